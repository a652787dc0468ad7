// How figures are laid out on a phone, in reports and on the dashboard.
window.gputwinPhone = (() => {
  "use strict";
  // On a phone titles of axes go over several lines (`sign`: width of a letter, em), and so do long names beside bars; many
  // labels below bars stand on end, long ids have only their beginning and end, each name of a legend has a line of its own.
  const PHONE = { width: 480, beside: 20, long: 16, line: 12, labels: 6, cells: 8, name: 18, panel: 150, sign: 0.6 };
  const LONG_ID = /^(\S{8})\S{9,}(\S{4})$/;
  const MANY_NAMES = 6;
  // Higher ones have a row for each of many names.
  const ORDINARY_HEIGHT = 480;

  const inLines = (text, most) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = `${lines.at(-1)} ${word}`.trim();
      if (line.length <= most || !lines.at(-1)) lines[lines.length - 1] = line;
      else lines.push(word);
    }
    return lines.join("<br>");
  };
  // Panels side by side would be narrower than their titles.
  const stack = (layout, panels) => {
    layout.height = 60 + PHONE.panel * panels;
    const axis = (of, i) => layout[`${of}axis${i ? i + 1 : ""}`];
    const title = axis("x", panels - 1).title ?? layout.xaxis.title;
    for (let i = 0; i < panels; i++) {
      const top = 1 - i / panels;
      const own = axis("x", i).title;
      const shown = i === panels - 1 ? title : own?.text !== title?.text ? own : undefined;
      Object.assign(axis("x", i), { domain: [0, 1], title: shown });
      axis("y", i).domain = [top - 0.6 / panels, top];
      Object.assign(layout.annotations[i], { x: 0.5, y: top });
    }
  };
  // The many columns of a matrix are numbered, and the rows of the same names have these numbers too: the numbers by name.
  const numbered = (data, layout) => {
    const [matrix] = data;
    const names = matrix?.type === "heatmap" ? matrix.x : [];
    if (names.length <= PHONE.cells || names.some((name) => !matrix.y.includes(name))) return new Map();
    const ticktext = names.map((_, i) => String(i + 1));
    Object.assign(layout.xaxis, { tickmode: "array", tickvals: names, ticktext, tickangle: 0, tickfont: { size: 8 } });
    if (matrix.colorbar) {
      const title = { ...matrix.colorbar.title, side: "top" };
      Object.assign(matrix.colorbar, { title, orientation: "h", x: 0.5, y: 1, yanchor: "bottom", thickness: 8 });
    }
    return new Map(names.map((name, i) => [name, i + 1]));
  };
  const isPhone = (place) => place.clientWidth < PHONE.width;
  const forPhone = (layout, data) => {
    if (layout.meta?.panels) stack(layout, layout.meta.panels);
    const rows = layout.yaxis?.type === "category" ? [...new Set(data.flatMap((trace) => trace.y ?? []))] : [];
    // Names of rows are the rows themselves, or stand beside their places.
    const places = rows.length ? rows : layout.yaxis?.tickvals ?? [];
    const names = rows.length ? rows : layout.yaxis?.ticktext ?? [];
    const columns = numbered(data, layout);
    if (columns.size || names.some((name) => String(name).length > PHONE.long)) {
      const ticktext = names.map((name) => {
        const short = String(name).replace(LONG_ID, "$1…$2");
        return inLines(columns.has(name) ? `${columns.get(name)} ${short}` : short, PHONE.beside);
      });
      layout.height += PHONE.line * names.length * (Math.max(...ticktext.map((text) => text.split("<br>").length)) - 1);
      layout.yaxis = { ...layout.yaxis, tickmode: "array", tickvals: places, ticktext };
    }
    for (const key of Object.keys(layout)) {
      if (!/^xaxis/.test(key) || columns.size) continue;
      const labels = layout[key].type === "category" ? new Set(data.flatMap((trace) => trace.x ?? [])) : [];
      if (labels.size > PHONE.labels) Object.assign(layout[key], { tickangle: -90, dtick: 1 });
    }
    // Numbers in the cells of a wide matrix are too small to read; its colours stay, and a table has them.
    for (const trace of data) if (trace.texttemplate && (trace.x ?? []).length > PHONE.cells) trace.texttemplate = "";
    // A legend beside the figure goes above it.
    if (layout.legend?.orientation === "v") layout.legend = { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" };
    // A long one makes the figure higher, instead of scrolling within half of it.
    const listed = layout.showlegend ? data.filter((trace) => trace.showlegend !== false) : [];
    const entries = listed.reduce((lines, trace) => lines + String(trace.name ?? "").split("<br>").length, 0);
    if (entries > MANY_NAMES) {
      layout.height += PHONE.name * (entries - MANY_NAMES + (layout.height < ORDINARY_HEIGHT ? MANY_NAMES / 2 : 0));
      layout.legend = { ...layout.legend, maxheight: PHONE.name * (entries + 2) };
    }
  };
  // A title is in the middle of its axis, which long names beside it move to one side.
  const fitTitles = (place) => {
    const { _size: size, width, ...layout } = place._fullLayout;
    const wanted = {};
    for (const key of Object.keys(layout)) {
      // Where an axis has no title, the full layout has a text of Plotly's that asks for one.
      const text = /^xaxis/.test(key) && place.layout[key]?.title?.text;
      if (!text) continue;
      const middle = size.l + (size.w * (layout[key].domain[0] + layout[key].domain[1])) / 2;
      const signs = (2 * Math.min(middle, width - middle)) / (PHONE.sign * layout[key].title.font.size);
      const lines = inLines(text.replaceAll("<br>", " "), Math.floor(signs));
      if (lines !== text) wanted[`${key}.title.text`] = lines;
    }
    return Object.keys(wanted).length ? Plotly.relayout(place, wanted) : null;
  };

  return { MANY_NAMES, ORDINARY_HEIGHT, isPhone, forPhone, fitTitles };
})();

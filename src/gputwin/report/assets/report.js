// Draws figures when they come into sight, opens sections, switches between light and dark, prints in light, and saves
// the data behind a figure.
(() => {
  "use strict";
  const KEY = "gputwin-theme";
  // On paper the answer's chart is as wide as the page, the figures of open sections stand two in a row.
  const PRINTED = { width: 660, height: 260, panels: 400, row: 16 };
  const PRINTED_HALF = { width: 318, height: 160, panels: 240, row: 12 };
  const BRIEF_HEIGHT = 160;
  const LONG_NAMES = 60;
  const { MANY_NAMES, ORDINARY_HEIGHT, isPhone, forPhone, fitTitles } = window.gputwinPhone;
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // By default Plotly offers to send a chart's data to its makers' server; nothing leaves this page.
  const config = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  let chosen = null;
  try { chosen = localStorage.getItem(KEY); } catch { /* storage may be denied: the system's theme then */ }

  const theme = () => (chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light");
  root.dataset.theme = theme();
  addEventListener("error", () => { root.dataset.failed = "true"; });
  addEventListener("unhandledrejection", () => { root.dataset.failed = "true"; });

  // Plotly's script and the figures' data are in the page, compressed.
  const unpack = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  let loading = null;
  const load = () => (loading ??= unpack("report-data").then(JSON.parse));
  let starting = null;
  const start = () => (starting ??= unpack("plotly").then((text) => {
    // The page's policy lets it run by its digest.
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  }));

  // No line breaks inside a quantity, as in 2 min 16 s or 69.1 %.
  const QUANTITY = /\d[\d.,]* (?:%|(?:d|h|min|s|ms|GPUs?|nodes?)\b)(?:(?<=[dhn]) \d+ (?:h|min|s)\b)?/g;
  const keepTogether = (place) => {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!text.parentElement.closest("code, pre, script")) {
        text.data = text.data.replace(QUANTITY, (found) => found.replaceAll(" ", "\u00a0"));
      }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    keepTogether(document.getElementById("content"));
    const button = document.getElementById("theme");
    const all = document.getElementById("all");
    const sections = [...document.querySelectorAll("section > details")];
    const figures = [...document.querySelectorAll("[data-figure]")];
    const isOpen = (place) => !place.closest("details:not([open])");
    const drawn = new Set();
    const printed = new Set();

    // Panels, numbers in a matrix, many names in the legend and long ones below bars need the width of the page.
    const isWide = (layout, data) => layout.yaxis2 || (layout.showlegend && data.length > MANY_NAMES) ||
      data.some((trace) => trace.texttemplate ||
        (layout.xaxis?.type === "category" && (trace.x ?? []).join("").length > LONG_NAMES));
    // A figure as it is printed: lower, in smaller type, and with every name of its rows.
    const forPaper = (place, layout, data) => {
      const wide = isWide(layout, data);
      place.classList.toggle("wide", Boolean(wide));
      const paper = place.closest("details") && !wide ? PRINTED_HALF : PRINTED;
      const rows = layout.yaxis?.type === "category" ? new Set(data.flatMap((trace) => trace.y ?? [])).size : 0;
      layout.width = paper.width;
      if (document.body.classList.contains("brief")) layout.height = BRIEF_HEIGHT;
      else if (rows) layout.height = Math.min(layout.height, Math.max(100 + paper.row * rows, paper.height));
      else if (layout.height <= ORDINARY_HEIGHT) layout.height = Math.min(layout.height, paper.height);
      else if (layout.yaxis2) layout.height = Math.min(layout.height, Math.max(paper.panels, 0.65 * layout.height));
      if (rows) layout.yaxis = { ...layout.yaxis, dtick: 1 };
      if (paper === PRINTED) return;
      layout.margin = { l: 44, r: 10, t: 18, b: 34 };
      layout.font = { ...layout.font, size: 9 };
      layout.legend = { ...layout.legend, font: { size: 9 } };
      for (const key of Object.keys(layout)) {
        if (!/^[xy]axis/.test(key)) continue;
        const title = { ...layout[key].title, font: { size: 9 }, standoff: 4 };
        layout[key] = { ...layout[key], title, tickfont: { size: 8 } };
      }
    };
    const draw = async (places, name, isPrinted) => {
      for (const place of places) drawn.add(place);
      const report = await load();
      if (places.length) await start();
      await Promise.all(places.map(async (place) => {
        const { data, layout } = structuredClone(report.figures[place.dataset.figure]);
        layout.template = report.themes[name];
        // A figure of few colours takes the theme's first ones.
        if (layout.colorway) layout.colorway = layout.template.layout.colorway.slice(0, layout.colorway.length);
        if (isPrinted) forPaper(place, layout, data);
        else if (isPhone(place)) forPhone(layout, data);
        place.style.height = `${layout.height}px`;
        const image = { filename: place.dataset.figure, scale: 2 };
        // Plotly keeps the width of paper and the place of its legend after printing.
        if (!isPrinted && printed.delete(place)) Plotly.purge(place);
        if (isPrinted) printed.add(place);
        await Plotly.react(place, data, layout, { ...config, toImageButtonOptions: image });
        if (!isPrinted && isPhone(place)) await fitTitles(place);
      }));
      root.dataset.drawn = drawn.size;
    };
    const paint = (name) => {
      root.dataset.theme = name;
      button.textContent = name === "dark" ? "Light" : "Dark";
    };
    const show = () => {
      paint(theme());
      return draw(figures.filter((place) => isOpen(place) || drawn.has(place)), theme());
    };

    const open = (id) => {
      const target = id && document.getElementById(id);
      const closed = target && (target.querySelector("details") ?? target.closest("details"));
      if (closed) closed.open = true;
      if (target) target.scrollIntoView();
    };
    const label = () => {
      const every = sections.every((s) => s.open);
      if (!all) return;
      all.textContent = every ? "Close all" : "Open all";
      all.setAttribute("aria-pressed", String(every));
    };
    for (const section of sections) {
      section.addEventListener("toggle", () => {
        label();
        if (section.open) draw(figures.filter((f) => section.contains(f) && !drawn.has(f)), theme());
      });
    }
    all?.addEventListener("click", () => {
      const wanted = !sections.every((s) => s.open);
      for (const section of sections) section.open = wanted;
    });
    addEventListener("hashchange", () => open(location.hash.slice(1)));

    if (location.hash === "#all") for (const section of sections) section.open = true;
    else open(location.hash.slice(1));
    show();
    dark.addEventListener("change", show);
    button.addEventListener("click", () => {
      chosen = theme() === "dark" ? "light" : "dark";
      try { localStorage.setItem(KEY, chosen); } catch { /* kept for this visit only */ }
      show();
    });
    addEventListener("beforeprint", () => {
      paint("light");
      draw(figures.filter(isOpen), "light", true);
    });
    addEventListener("afterprint", show);

    for (const save of document.querySelectorAll("[data-csv]")) {
      save.addEventListener("click", async () => {
        const report = await load();
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([report.tables[save.dataset.csv]], { type: "text/csv" }));
        link.download = `${save.dataset.csv}.csv`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    }

    const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
    for (const link of links.values()) link.addEventListener("click", () => open(link.hash.slice(1)));
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-10% 0px -80% 0px" });
    for (const section of document.querySelectorAll("section")) watch.observe(section);
  });
})();

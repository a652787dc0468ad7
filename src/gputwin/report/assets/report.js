// Draws the report's figures, switches between light and dark, prints in light, and saves the data behind a figure.
(() => {
  "use strict";
  const KEY = "gputwin-theme";
  const PRINT_WIDTH = 660;
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

  document.addEventListener("DOMContentLoaded", () => {
    const report = JSON.parse(document.getElementById("report-data").textContent);
    const button = document.getElementById("theme");

    const draw = (name, width) => {
      root.dataset.theme = name;
      button.textContent = name === "dark" ? "Light" : "Dark";
      return Promise.all([...document.querySelectorAll("[data-figure]")].map((place) => {
        const { data, layout } = structuredClone(report.figures[place.dataset.figure]);
        layout.template = report.themes[name];
        // A figure of few colours takes the theme's first ones.
        if (layout.colorway) layout.colorway = layout.template.layout.colorway.slice(0, layout.colorway.length);
        if (width) layout.width = width;
        const image = { filename: place.dataset.figure, scale: 2 };
        return Plotly.react(place, data, layout, { ...config, toImageButtonOptions: image });
      }));
    };
    const show = () => draw(theme());

    show().then((drawn) => { root.dataset.drawn = drawn.length; });
    dark.addEventListener("change", show);
    button.addEventListener("click", () => {
      chosen = theme() === "dark" ? "light" : "dark";
      try { localStorage.setItem(KEY, chosen); } catch { /* kept for this visit only */ }
      show();
    });
    addEventListener("beforeprint", () => draw("light", PRINT_WIDTH));
    addEventListener("afterprint", show);

    for (const save of document.querySelectorAll("[data-csv]")) {
      save.addEventListener("click", () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([report.tables[save.dataset.csv]], { type: "text/csv" }));
        link.download = `${save.dataset.csv}.csv`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    }

    const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
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

// Light or dark: as chosen before, else as the system is set. Runs before anything is painted.
(() => {
  "use strict";
  const KEY = "gputwin-theme";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem(KEY); } catch { /* storage may be denied: the system's theme then */ }
  const name = () => (chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light");
  const apply = () => {
    root.dataset.theme = name();
    dispatchEvent(new CustomEvent("gputwin-theme", { detail: name() }));
  };
  root.lang = "en";
  root.dataset.theme = name();
  dark.addEventListener("change", apply);
  window.gputwinTheme = {
    name,
    toggle() {
      chosen = name() === "dark" ? "light" : "dark";
      try { localStorage.setItem(KEY, chosen); } catch { /* kept for this visit only */ }
      apply();
    },
  };
})();

// Measures a report: places, sizes, names for a screen reader, contrast (WCAG 2.1).
() => {
  const box = (e) => { const b = e.getBoundingClientRect(); return { top: b.top, bottom: b.bottom, left: b.left, right: b.right }; };
  const colour = (text) => { const m = text.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (e) => { const a = light(colour(getComputedStyle(e).color)), b = light(behind(e)); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
  const shown = [...document.querySelectorAll("body *")].filter((e) => !e.closest("svg, script, noscript, .js-plotly-plot") &&
    e.checkVisibility() && !e.classList.contains("skip") && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  const name = (e) => (e.getAttribute("aria-label") || e.textContent).trim();
  const sized = getComputedStyle;
  return {
    width: innerWidth, height: innerHeight,
    pageWidth: document.documentElement.scrollWidth, pageHeight: document.documentElement.scrollHeight,
    verdict: document.querySelector(".verdict") && box(document.querySelector(".verdict")),
    question: document.querySelector(".question")?.textContent ?? "",
    tiles: document.querySelectorAll(".answer .cards > div").length,
    charts: document.querySelectorAll(".answer [data-figure]").length,
    findings: document.querySelectorAll(".answer .findings li").length,
    next: document.querySelectorAll(".next li").length,
    open: document.querySelectorAll("details[open]").length, closed: document.querySelectorAll("details:not([open])").length,
    unnamed: [...document.querySelectorAll("a, button, [role=group], summary, [role=region]")].filter((e) => !name(e)).map((e) => e.outerHTML.slice(0, 80)),
    levels: [...document.querySelectorAll("h1, h2, h3")].map((e) => Number(e.tagName[1])),
    tablesWithoutHead: [...document.querySelectorAll("table")].filter((t) => !t.querySelector("th[scope=col]") || !t.caption).length,
    faint: shown.filter((e) => contrast(e) < 4.5).map((e) => `${e.tagName}.${e.className} ${contrast(e).toFixed(2)} ${e.textContent.slice(0, 40)}`),
    small: shown.filter((e) => parseFloat(sized(e).fontSize) < 11).map((e) => e.textContent.slice(0, 40)),
    lang: document.documentElement.lang,
    figures: document.querySelectorAll("[data-figure]").length, pictures: document.querySelectorAll(".main-svg").length,
    drawn: Number(document.documentElement.dataset.drawn ?? 0), failed: document.documentElement.dataset.failed ?? null,
    theme: document.documentElement.dataset.theme,
  };
}

import { keep } from "/assets/quantities.js";

// A figure: drawn when it comes into sight, drawn again in the other theme's colours, its data to be saved.
const config = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};
let loading = null;
const load = () => (loading ??= Promise.all([
  new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "/assets/plotly.js";
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  }),
  fetch("/assets/themes.json").then((answer) => answer.json()),
]).then(([, themes]) => themes));

export default {
  props: { part: Object },
  template: `
    <figure>
      <h3>{{ part.title }}</h3>
      <div ref="plot" class="plot" role="group" :aria-label="part.title" :style="{ height: part.height + 'px' }"></div>
      <figcaption>{{ keep(part.caption) }}
        <button type="button" class="small" @click="save" :aria-label="'Data of ' + part.title + ' as CSV'">Data (CSV)</button>
      </figcaption>
    </figure>`,
  mounted() {
    this.onTheme = () => { if (this.isDrawn) this.draw(); };
    addEventListener("gputwin-theme", this.onTheme);
    this.watcher = new IntersectionObserver((seen) => {
      if (seen.some((entry) => entry.isIntersecting)) {
        this.watcher.disconnect();
        this.draw();
      }
    }, { rootMargin: "200px" });
    this.watcher.observe(this.$refs.plot);
  },
  unmounted() {
    removeEventListener("gputwin-theme", this.onTheme);
    this.watcher.disconnect();
  },
  methods: {
    keep,
    async draw() {
      const themes = await load();
      const { data, layout } = JSON.parse(JSON.stringify(this.part.figure));
      layout.template = themes[window.gputwinTheme.name()];
      if (layout.colorway) layout.colorway = layout.template.layout.colorway.slice(0, layout.colorway.length);
      const plot = this.$refs.plot;
      if (!plot) return;
      const { isPhone, forPhone, fitTitles } = window.gputwinPhone;
      if (isPhone(plot)) forPhone(layout, data);
      plot.style.height = `${layout.height}px`;
      const image = { filename: this.part.id, scale: 2 };
      await Plotly.react(plot, data, layout, { ...config, toImageButtonOptions: image });
      if (isPhone(plot)) await fitTitles(plot);
      this.isDrawn = true;
      document.documentElement.dataset.drawn = Number(document.documentElement.dataset.drawn ?? 0) + 1;
    },
    save() {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([this.part.csv], { type: "text/csv" }));
      link.download = `${this.part.id}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
  },
};

// The cluster at one moment: racks of nodes as tiles, filled by what holds their GPUs; a slider moves the moment.
import { Table } from "/assets/parts.js";
import { keep } from "/assets/quantities.js";

const COLOURS = {
  light: ["#0072b2", "#d98a00", "#008a65", "#b3430a", "#b0578a", "#4aa3dc", "#7a6a00", "#5b4ea3"],
  dark: ["#56b4e9", "#f0b429", "#2fc29a", "#f58a55", "#e39bc4", "#8fc8f5", "#d9c94a", "#a99cf0"],
};
const OTHERS = { light: "#6b7280", dark: "#a3adb8" };
const MOST = 4000;

export default {
  components: { Table },
  props: { run: String, view: Object, zero: Number },
  data() {
    return { now: this.view, share: this.share_of(this.view), by: "tenant", theme: "light", playing: false, wanted: null };
  },
  computed: {
    ranked() {
      const held = new Map();
      for (const node of this.now.nodes) {
        node.devices.forEach((device) => {
          if (!device) return;
          const key = this.by === "model" ? node.model || "unnamed" : this.now.tenants[device[0]];
          held.set(key, (held.get(key) ?? 0) + device[1] / 1000);
        });
      }
      return [...held].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    },
    colours() {
      const palette = COLOURS[this.theme];
      return new Map(this.ranked.slice(0, palette.length).map(([name], i) => [name, palette[i]]));
    },
    legend() {
      if (this.by === "use") return [["idle", "var(--idle)"], ["a quarter held", this.shade(0.25)], ["half", this.shade(0.5)], ["whole", this.shade(1)]];
      const shown = [...this.colours].map(([name, colour], i) => [`${name} (${this.gpus(this.ranked[i][1])})`, colour]);
      const left = this.ranked.slice(shown.length);
      if (left.length) shown.push([`${left.length} others (${this.gpus(left.reduce((a, b) => a + b[1], 0))})`, OTHERS[this.theme]]);
      return [...shown, ["idle", "var(--idle)"]];
    },
    racks() {
      const racks = new Map();
      for (const node of this.now.nodes.slice(0, MOST)) {
        const name = node.rack ? `Rack ${node.rack}` : node.gpus ? `${node.model || "GPU"} nodes` : "Nodes without GPUs";
        if (!racks.has(name)) racks.set(name, []);
        racks.get(name).push(node);
      }
      return [...racks].map(([name, nodes]) => ({ name, nodes, gpus: nodes.reduce((a, n) => a + n.gpus, 0), held: nodes.reduce((a, n) => a + n.held, 0) }));
    },
    moment() { return this.words(this.now.time - this.now.first); },
    cards() {
      return [
        ["GPUs held", `${(100 * this.now.allocated).toFixed(1)} %`], ["Jobs running", this.now.running_jobs.toLocaleString("en")],
        ["Jobs waiting", this.now.waiting_jobs.toLocaleString("en")], ["Nodes wholly idle", this.now.idle_gangs.reduce((a, g) => a + g.idle_nodes, 0).toLocaleString("en")],
      ];
    },
    // A GPU's width, px: a small cluster fills its panel, a large one fits in it.
    pixels() {
      const gpus = this.now.nodes.reduce((a, n) => a + n.gpus, 0);
      return gpus <= 64 ? 24 : gpus <= 512 ? 12 : 6;
    },
    gangs() {
      const most = Math.max(1, ...this.now.idle_gangs.map((g) => g.nodes));
      const sizes = this.now.gang_sizes.filter((k) => k <= most);
      return {
        title: "Gangs of whole idle nodes that would fit now", note: "How many gangs of k nodes, all of one GPU model and wholly idle, could start at this moment.",
        columns: [{ name: "GPU model", kind: "text" }, { name: "nodes", kind: "number" }, { name: "idle", kind: "number" }, ...sizes.map((k) => ({ name: `gangs of ${k}`, kind: "number" }))],
        rows: this.now.idle_gangs.map((g) => [g.gpu_model, `${g.nodes}`, `${g.idle_nodes}`, ...sizes.map((k) => `${g[`gangs_of_${k}`]}`)]),
      };
    },
  },
  mounted() {
    this.theme = window.gputwinTheme.name();
    this.onTheme = (event) => { this.theme = event.detail; };
    addEventListener("gputwin-theme", this.onTheme);
  },
  unmounted() {
    removeEventListener("gputwin-theme", this.onTheme);
    clearInterval(this.player);
  },
  methods: {
    keep,
    share_of(view) { return view.last > view.first ? Math.round(1000 * (view.time - view.first) / (view.last - view.first)) : 0; },
    round(value) { return value >= 100 ? Math.round(value) : Number(value.toPrecision(3)); },
    gpus(value) { return `${this.round(value)} GPU${this.round(value) === 1 ? "" : "s"}`; },
    shade(share) { return `color-mix(in srgb, var(--accent) ${Math.round(100 * share)}%, var(--idle))`; },
    words(seconds) {
      const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24, minutes = Math.floor(seconds / 60) % 60;
      return `${days ? `${days} d ` : ""}${hours} h ${String(minutes).padStart(2, "0")} min`;
    },
    fill(node) {
      if (!node.gpus) return {};
      const step = 100 / node.gpus;
      const stops = node.devices.map((device, i) => {
        let colour = "var(--idle)";
        if (device && this.by === "use") colour = this.shade(device[1] / 1000);
        else if (device) colour = this.colours.get(this.by === "model" ? node.model || "unnamed" : this.now.tenants[device[0]]) ?? OTHERS[this.theme];
        return `${colour} ${i * step}% ${(i + 1) * step}%`;
      });
      return { background: `linear-gradient(90deg, ${stops.join(", ")})`, width: `${Math.max(node.gpus * this.pixels, 12) + 2}px`, height: `${Math.max(22, 1.5 * this.pixels)}px` };
    },
    label(node) { return `${node.name}: ${this.round(node.held)} of ${node.gpus} GPUs held by ${node.jobs} job${node.jobs === 1 ? "" : "s"}`; },
    slide(event) { this.share = Number(event.target.value); this.ask(); },
    async ask() {
      // One question at a time; the last one asked meanwhile comes next.
      if (this.asking) { this.wanted = this.share; return; }
      this.asking = true;
      try {
        const answer = await fetch(`/api/runs/${this.run}/cluster?share=${this.share / 1000}`);
        if (answer.ok) this.now = await answer.json();
      } finally { this.asking = false; }
      const url = new URL(location.href);
      url.searchParams.set("at", (this.share / 1000).toFixed(3));
      history.replaceState(null, "", url);
      if (this.wanted !== null && this.wanted !== this.share) { this.wanted = null; this.ask(); }
      this.wanted = null;
    },
    play() {
      this.playing = !this.playing;
      clearInterval(this.player);
      if (this.playing) this.player = setInterval(() => {
        this.share = this.share >= 1000 ? 0 : this.share + 5;
        this.ask();
      }, 400);
    },
  },
  template: `
    <div class="panel tiles-bar">
      <div class="time"><label for="moment">Moment: {{ moment }} after the first submission</label>
        <input id="moment" type="range" min="0" max="1000" step="1" :value="share" @input="slide" :aria-valuetext="moment"></div>
      <button type="button" @click="play" :aria-pressed="playing">{{ playing ? "Pause" : "Play" }}</button>
      <fieldset class="choices"><legend>Colour by</legend>
        <label><input type="radio" name="by" value="tenant" v-model="by">{{ view.tenants_are }}</label>
        <label><input type="radio" name="by" value="model" v-model="by">GPU model</label>
        <label><input type="radio" name="by" value="use" v-model="by">share held</label></fieldset>
    </div>
    <dl class="cards"><div v-for="c in cards"><dt>{{ c[0] }}</dt><dd>{{ keep(String(c[1])) }}</dd></div></dl>
    <div class="panel racks">
      <ul class="legend" aria-label="Legend"><li v-for="l in legend"><span class="swatch" :style="{ background: l[1] }"></span>{{ l[0] }}</li></ul>
      <div v-for="r in racks" class="rack"><h2>{{ r.name }}: {{ r.nodes.length }} nodes, {{ round(r.held) }} of {{ r.gpus }} GPUs held</h2>
        <div class="nodes"><a v-for="n in r.nodes" class="tile" :href="'/runs/' + run + '/nodes/' + n.node" :style="fill(n)" :title="label(n)" :aria-label="label(n)"></a></div></div>
      <p v-if="now.nodes.length > 4000" class="note">The first 4,000 of {{ now.nodes.length }} nodes are shown.</p>
    </div>
    <Table :part="gangs" />`,
};

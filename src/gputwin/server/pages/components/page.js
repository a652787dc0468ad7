// One page of the dashboard: its bar, title and blocks. All data come as text and are shown as text.
import Figure from "/assets/figure.js";
import Form from "/assets/form.js";
import { Document, Part, Table } from "/assets/parts.js";
import Task from "/assets/task.js";
import Tiles from "/assets/tiles.js";

const PARTS = ["prose", "statement", "cards", "bullets", "findings", "figure"];

export default {
  components: { Document, Figure, Form, Part, Table, Task, Tiles },
  props: { data: String },
  data() { return { page: JSON.parse(this.data), theme: window.gputwinTheme.name(), problem: "" }; },
  computed: { nav() { return [["/", "Traces and runs"], ["/new", "New run"], ["/policies", "Policies"], ["/rest", "API"]]; } },
  mounted() { addEventListener("gputwin-theme", (event) => { this.theme = event.detail; }); },
  methods: {
    isPart(block) { return PARTS.includes(block.kind); },
    isHere(href) { return this.page.path === href; },
    toggle() { window.gputwinTheme.toggle(); },
    async remove(block) {
      if (!confirm(block.question)) return;
      const answer = await fetch(block.action, { method: "DELETE" });
      if (answer.ok) location.href = block.then;
      else this.problem = (await answer.json()).detail;
    },
    async signOut() { await fetch("/logout", { method: "POST" }); location.href = "/login"; },
  },
  template: `
    <a class="skip" href="#content">Skip to the content</a>
    <div class="bar"><div class="wrap">
      <a class="brand" href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><rect x="2" y="2" width="9" height="9" rx="2" fill="currentColor"/><rect x="13" y="2" width="9" height="9" rx="2" fill="var(--accent)"/><rect x="2" y="13" width="9" height="9" rx="2" fill="var(--accent)"/><rect x="13" y="13" width="9" height="9" rx="2" fill="currentColor" opacity="0.45"/></svg>gputwin</a>
      <nav aria-label="Main"><a v-for="n in nav" :href="n[0]" :aria-current="isHere(n[0]) ? 'page' : null">{{ n[1] }}</a></nav>
      <span class="spread"></span>
      <button type="button" class="small" @click="toggle">{{ theme === "dark" ? "Light" : "Dark" }}<span class="sr"> theme</span></button>
      <button v-if="page.signed" type="button" class="small" @click="signOut">Sign out</button>
    </div></div>
    <div class="wrap">
      <div class="top">
        <p v-if="page.crumbs.length" class="crumbs"><template v-for="c in page.crumbs"><a :href="c.href">{{ c.text }}</a> / </template></p>
        <h1>{{ page.title }}</h1>
        <p v-if="page.lead" class="lead">{{ page.lead }}</p>
      </div>
      <nav v-if="page.tabs.length" class="tabs" aria-label="Views"><a v-for="t in page.tabs" :href="t.href" :aria-current="isHere(t.href) ? 'page' : null">{{ t.text }}</a></nav>
      <div id="content" class="main" tabindex="-1">
        <p v-if="problem" class="statement warning" role="alert">{{ problem }}</p>
        <template v-for="block in page.blocks">
          <Part v-if="isPart(block)" :part="block" />
          <Table v-else-if="block.kind === 'table'" :part="block" />
          <Document v-else-if="block.kind === 'document'" :document="block.document" />
          <Form v-else-if="block.kind === 'form'" :form="block" />
          <Task v-else-if="block.kind === 'task'" :task="block.task" />
          <Tiles v-else-if="block.kind === 'tiles'" :run="block.run" :view="block.view" />
          <div v-else-if="block.kind === 'two'" class="two"><template v-for="inner in block.blocks"><Form v-if="inner.kind === 'form'" :form="inner" /><Table v-else :part="inner" /></template></div>
          <h2 v-else-if="block.kind === 'heading'">{{ block.text }}</h2>
          <div v-else-if="block.kind === 'pager'" class="pager"><a v-if="block.before" :href="block.before">← Previous</a><span>{{ block.text }}</span><a v-if="block.after" :href="block.after">Next →</a></div>
          <div v-else-if="block.kind === 'links'" class="links apart"><template v-for="l in block.links">
            <button v-if="l.action" type="button" class="danger" @click="remove(l)">{{ l.text }}</button>
            <a v-else class="button" :class="{ primary: l.primary }" :href="l.href" :download="l.download ? '' : null">{{ l.text }}</a></template></div>
        </template>
      </div>
    </div>`,
};

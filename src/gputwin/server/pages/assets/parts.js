// The parts of a document: statements, cards, tables, findings, figures; and the document itself, the answer first.
import Figure from "/assets/figure.js";
import { keep } from "/assets/quantities.js";

// What stands between backticks is set as a command; Vue writes every piece as text.
const Words = {
  props: { text: String },
  computed: { pieces() { return keep(this.text).split("`").map((text, i) => ({ text, code: i % 2 === 1 })); } },
  template: `<template v-for="p in pieces"><code v-if="p.code">{{ p.text }}</code><template v-else>{{ p.text }}</template></template>`,
};

// A name can be thousands of characters long; a table shows its beginning, except in columns of our own sentences.
const LONGEST = 120;

const Cell = {
  props: { cell: [String, Object], whole: Boolean },
  computed: {
    shown() {
      const text = this.cell && this.cell.text !== undefined ? this.cell.text : this.cell;
      if (typeof text !== "string") return text;
      return keep(text.length > LONGEST && !this.whole ? `${text.slice(0, LONGEST)}…` : text);
    },
  },
  template: `<a v-if="cell && cell.href" :href="cell.href">{{ shown }}</a><template v-else>{{ shown }}</template>`,
};

const Cards = {
  props: { cards: Array },
  methods: { keep },
  template: `<dl class="cards"><div v-for="c in cards"><dt>{{ c.label }}</dt><dd :class="{ long: c.value.length > 16 }">{{ keep(c.value) }}</dd><dd v-if="c.note" class="note">{{ keep(c.note) }}</dd></div></dl>`,
};

// Of more rows than these a phone shows a table to be moved sideways, of fewer one row below the other.
const FEW_ROWS = 12;

export const Table = {
  components: { Cell },
  props: { part: Object },
  data() { return { chosen: [] }; },
  computed: {
    stacks() { return this.part.stacks || this.part.rows.length <= FEW_ROWS && this.part.columns.length > 2; },
  },
  methods: {
    go() { location.href = this.part.choose.href + this.chosen.join(","); },
  },
  template: `
    <div class="table" :class="{ stacks }">
      <p class="table-title">{{ part.title }}</p>
      <div v-if="part.rows.length" class="scroll" tabindex="0" role="region" :aria-label="part.title"><table :aria-label="part.title">
        <thead><tr>
          <th v-if="part.choose" class="choose" scope="col"><span class="sr">Choose</span></th>
          <th v-for="c in part.columns" scope="col" :class="c.kind" :aria-sort="c.sort || null"><a v-if="c.href" :href="c.href">{{ c.name }}{{ c.sort === "descending" ? " ↓" : c.sort ? " ↑" : "" }}</a><template v-else>{{ c.name }}</template></th>
        </tr></thead>
        <tbody><tr v-for="(row, i) in part.rows">
          <td v-if="part.choose" class="choose"><input type="checkbox" :value="part.choose.ids[i]" v-model="chosen" :aria-label="'Choose ' + (row[0].text || row[0])"></td>
          <td v-for="(cell, k) in row" :class="[part.columns[k].kind, { whole: part.columns[k].whole }]" :data-name="part.columns[k].name"><Cell :cell="cell" :whole="part.columns[k].whole" /></td>
        </tr></tbody>
      </table></div>
      <p v-else class="empty">{{ part.empty || "Nothing here yet." }}</p>
      <p v-if="part.note" class="note">{{ part.note }}</p>
      <div v-if="part.choose && part.rows.length > 1" class="links"><button type="button" :disabled="chosen.length < 2" @click="go">{{ part.choose.text }}</button></div>
    </div>`,
};

export const Findings = {
  props: { part: Object },
  methods: { keep },
  template: `<div class="findings"><h3>{{ part.title }}</h3><ul><li v-for="r in part.remarks" :class="r.warning ? 'warning' : 'plain'">{{ keep(r.text) }}</li></ul></div>`,
};

export const Part = {
  components: { Cards, Figure, Findings, Table },
  props: { part: Object },
  methods: { keep },
  template: `
    <p v-if="part.kind === 'prose'">{{ keep(part.text) }}</p>
    <p v-else-if="part.kind === 'statement'" class="statement" :class="part.tone">{{ keep(part.text) }}</p>
    <Cards v-else-if="part.kind === 'cards'" :cards="part.cards" />
    <ul v-else-if="part.kind === 'bullets'"><li v-for="item in part.items">{{ keep(item) }}</li></ul>
    <Findings v-else-if="part.kind === 'findings'" :part="part" />
    <Table v-else-if="part.kind === 'table'" :part="part" />
    <Figure v-else-if="part.kind === 'figure'" :part="part" />`,
};

const runs = (parts) => {
  const found = [];
  for (const part of parts) {
    const half = part.kind === "figure" && part.half;
    if (found.length && found.at(-1).half === half) found.at(-1).parts.push(part);
    else found.push({ half, parts: [part] });
  }
  return found;
};

export const Document = {
  components: { Cards, Figure, Findings, Part, Words },
  props: { document: Object },
  data() { return { open: Object.fromEntries(this.document.sections.filter((s) => s.open).map((s) => [s.id, true])) }; },
  methods: {
    keep,
    runs,
    toggled(id, event) { if (event.target.open) this.open = { ...this.open, [id]: true }; },
  },
  template: `
    <section class="answer" :aria-labelledby="document.answer.id + '-title'">
      <h2 class="question" :id="document.answer.id + '-title'">{{ document.answer.question }}</h2>
      <p v-if="document.answer.verdict" class="statement verdict" :class="document.answer.verdict.tone">{{ keep(document.answer.verdict.text) }}</p>
      <Cards v-if="document.answer.cards.length" :cards="document.answer.cards" />
      <Part v-if="document.answer.summary" :part="document.answer.summary" />
      <Figure v-if="document.answer.chart" :part="document.answer.chart" />
      <Findings v-if="document.answer.findings" :part="document.answer.findings" />
      <template v-if="document.answer.next_steps.length"><h3>What to do next</h3><ul><li v-for="step in document.answer.next_steps"><Words :text="step" /></li></ul></template>
    </section>
    <details v-for="s in document.sections" class="section" :id="s.id" :open="s.open || null" @toggle="toggled(s.id, $event)">
      <summary><h2>{{ s.title }}</h2><span v-if="s.gist" class="gist">{{ keep(s.gist) }}</span></summary>
      <div v-if="open[s.id]" class="parts">
        <template v-for="run in runs(s.parts)"><div v-if="run.half" class="halves"><Part v-for="p in run.parts" :part="p" /></div><Part v-else v-for="p in run.parts" :part="p" /></template>
        <p v-for="note in s.notes" class="note">{{ note }}</p>
      </div>
    </details>`,
};

// A form described by data. GET forms change the address; others send JSON, or files, and go where the answer says.
const place = (target, path, value) => {
  const names = path.split(".");
  for (const name of names.slice(0, -1)) target = target[name] ??= {};
  target[names.at(-1)] = value;
};

const Field = {
  props: { field: Object, value: {}, prefix: String },
  emits: ["change"],
  computed: {
    id() { return `${this.prefix}-${this.field.name.replaceAll(".", "-")}`; },
    option() { return (this.field.options ?? []).find((o) => o.value === this.value); },
    help() { return this.option?.help ?? this.field.help ?? ""; },
  },
  methods: {
    set(event) { this.$emit("change", this.field.type === "checkbox" ? event.target.checked : event.target.value); },
  },
  template: `
    <div class="field" :class="{ wide: field.wide }">
      <div v-if="field.type === 'checkbox'" class="check"><input type="checkbox" :id="id" :name="field.name" :checked="value" @change="set"><label :for="id">{{ field.label }}</label></div>
      <template v-else>
        <label :for="id">{{ field.label }}<template v-if="field.type === 'range'">: {{ value }}{{ field.unit || "" }}</template></label>
        <select v-if="field.type === 'select'" :id="id" :name="field.name" :value="value" @change="set" :aria-describedby="help ? id + '-help' : null">
          <option v-for="o in field.options" :value="o.value">{{ o.label }}</option>
        </select>
        <input v-else-if="field.type === 'file'" :id="id" :name="field.name" type="file" :multiple="field.multiple" :required="field.required" :accept="field.accept" :aria-describedby="help ? id + '-help' : null">
        <input v-else :id="id" :name="field.name" :type="field.type" :value="value" :min="field.min" :max="field.max" :step="field.step || (field.type === 'number' ? 'any' : null)"
          :required="field.required" :placeholder="field.placeholder" :list="field.suggest ? id + '-list' : null" @input="set" :aria-describedby="help ? id + '-help' : null">
        <datalist v-if="field.suggest" :id="id + '-list'"><option v-for="o in field.suggest" :value="o"></option></datalist>
      </template>
      <p v-if="help" class="help" :id="id + '-help'">{{ help }}</p>
    </div>`,
};

export default {
  components: { Field },
  props: { form: Object },
  data() {
    const values = {};
    for (const group of this.form.groups) for (const field of group.fields) values[field.name] = field.value ?? "";
    return { values, parameters: {}, problem: "", busy: false };
  },
  methods: {
    // A policy's parameters appear with it.
    own(field) {
      const found = (field.options ?? []).find((o) => o.value === this.values[field.name])?.parameters ?? {};
      return Object.entries(found).map(([name, value]) => ({
        name: `${field.name}:${name}`, label: `${this.values[field.name]}: ${name.replaceAll("_", " ")}`, type: "number", placeholder: String(value),
        help: `${value} unless given`,
      }));
    },
    written(field) {
      const value = this.values[field.name];
      const given = this.own(field).filter((p) => (this.parameters[p.name] ?? "") !== "");
      return given.length ? `${value}:${given.map((p) => `${p.name.split(":")[1]}=${this.parameters[p.name]}`).join(",")}` : value;
    },
    body() {
      const made = {};
      for (const group of this.form.groups) {
        for (const field of group.fields) {
          const value = this.written(field);
          if (value === "" || value === null || (field.skip !== undefined && value === field.skip)) continue;
          const number = field.type === "number" || field.type === "range" || field.numeric;
          place(made, field.name, number ? Number(value) : value);
        }
      }
      return made;
    },
    async send(event) {
      if (this.form.method === "get") return;
      event.preventDefault();
      if (this.busy) return;
      this.busy = true;
      this.problem = "";
      try {
        const upload = this.form.method === "upload";
        if (this.form.check) {
          const init = { method: "POST", body: JSON.stringify(this.body()), headers: { "content-type": "application/json" } };
          const verdict = await (await fetch(this.form.check, init)).json();
          if (verdict.is_valid === false) throw new Error(verdict.problem);
        }
        const init = upload ? { body: new FormData(event.target) } : { body: JSON.stringify(this.body()), headers: { "content-type": "application/json" } };
        const answer = await fetch(this.form.action, { method: "POST", ...init });
        const told = await answer.json();
        if (!answer.ok) throw new Error(typeof told.detail === "string" ? told.detail : (told.detail ?? []).map((d) => `${(d.loc ?? []).slice(1).join(".")}: ${d.msg}`).join("; "));
        location.href = told.run ? `/runs/${told.run}` : `/tasks/${told.id}`;
      } catch (error) {
        this.problem = error.message || "The server did not answer.";
        this.busy = false;
      }
    },
  },
  template: `
    <form class="panel" :method="form.method === 'get' ? 'get' : 'post'" :action="form.action" @submit="send" :aria-label="form.title">
      <h2 v-if="form.title">{{ form.title }}</h2>
      <p v-if="form.text">{{ form.text }}</p>
      <template v-for="(group, g) in form.groups">
        <details v-if="group.closed" class="panel"><summary><h2>{{ group.title }}</h2><span v-if="group.text" class="gist">{{ group.text }}</span></summary><div class="parts"><div class="fields">
          <Field v-for="f in group.fields" :field="f" :prefix="form.id" :value="values[f.name]" @change="values[f.name] = $event" />
        </div><br></div></details>
        <fieldset v-else-if="group.title"><legend>{{ group.title }}</legend><div class="fields">
          <template v-for="f in group.fields"><Field :field="f" :prefix="form.id" :value="values[f.name]" @change="values[f.name] = $event" />
          <Field v-for="p in own(f)" :key="p.name" :field="p" :prefix="form.id" :value="parameters[p.name] ?? ''" @change="parameters[p.name] = $event" /></template>
        </div></fieldset>
        <div v-else class="fields" :class="{ narrow: form.narrow }"><Field v-for="f in group.fields" :field="f" :prefix="form.id" :value="values[f.name]" @change="values[f.name] = $event" /></div>
      </template>
      <div class="form-end"><button class="primary" type="submit" :disabled="busy">{{ busy ? "Sending…" : form.submit }}</button>
        <p v-if="problem" class="statement warning" role="alert">{{ problem }}</p></div>
    </form>`,
};

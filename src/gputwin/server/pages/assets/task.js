// Work under way: how far it is, a button that stops it, and where its result is.
export default {
  props: { task: Object },
  data() { return { now: this.task, problem: "", cancelling: false }; },
  computed: {
    under_way() { return this.now.state === "waiting" || this.now.state === "running"; },
    percent() { return this.now.done === null ? null : Math.round(100 * this.now.done); },
    step() { return this.cancelling ? "cancelling" : this.now.step; },
    // Said only once enough is done to judge by.
    left() {
      if (this.cancelling || this.now.done === null || this.now.done < 0.05 || this.now.seconds < 3) return "";
      const seconds = (this.now.seconds * (1 - this.now.done)) / this.now.done;
      return seconds < 90 ? `, about ${Math.ceil(seconds)} s left` : `, about ${Math.round(seconds / 60)} min left`;
    },
  },
  mounted() { if (this.under_way) this.timer = setInterval(this.look, 400); },
  unmounted() { clearInterval(this.timer); },
  methods: {
    async look() {
      try {
        const answer = await fetch(`/api/tasks/${this.task.id}`);
        if (answer.status === 429 || answer.status === 503) return;
        if (!answer.ok) throw new Error("The server has forgotten this task.");
        this.now = await answer.json();
        this.problem = "";
      } catch (error) {
        this.problem = error.message;
        return;
      }
      if (this.under_way) return;
      clearInterval(this.timer);
      if (this.now.state !== "done") return;
      const here = location.pathname + location.search;
      if (this.now.page && this.now.page !== here && location.pathname.startsWith("/tasks/")) location.replace(this.now.page);
      else location.reload();
    },
    async cancel() {
      this.cancelling = true;
      await fetch(`/api/tasks/${this.task.id}/cancel`, { method: "POST" });
    },
  },
  template: `
    <div class="panel progress">
      <h2>{{ now.title }}</h2>
      <template v-if="under_way">
        <div class="track" role="progressbar" :aria-label="now.title" aria-valuemin="0" aria-valuemax="100" :aria-valuenow="percent"><div class="fill" :class="{ unknown: percent === null }" :style="percent === null ? {} : { width: percent + '%' }"></div></div>
        <div class="state"><span role="status">{{ step }}{{ percent === null ? "" : " · " + percent + " %" }}</span><span>{{ now.seconds }} s{{ left }}</span></div>
        <p></p><button type="button" :disabled="cancelling" @click="cancel">Cancel</button>
      </template>
      <p v-else-if="now.state === 'failed'" class="statement warning" role="alert">{{ now.error }}</p>
      <p v-else-if="now.state === 'cancelled'" class="statement" role="status">Cancelled after {{ now.seconds }} s; nothing was kept.</p>
      <p v-else class="statement good" role="status">Done in {{ now.seconds }} s. <a v-if="now.page" :href="now.page">See it</a></p>
      <p v-if="problem" class="statement warning" role="alert">{{ problem }}</p>
    </div>`,
};

// @ts-check
/** The syncs of toolkits with their sources: when each was last synced, and a button to do it now. */

import { Problem, readLines } from "./api.js";
import { count, h, keepingFocus } from "./dom.js";

/**
 * @typedef {object} State of a toolkit
 * @property {string} toolkit
 * @property {string} every
 * @property {boolean} running
 * @property {boolean} interrupted
 * @property {string} succeeded_at
 * @property {string} failed_at
 * @property {number} [records]
 * @property {string} [error]
 */

export class Syncs {
  /**
   * @param {import("./api.js").Server} server
   * @param {object} owner
   * @param {(said: unknown) => void} owner.report
   * @param {() => Promise<void>} owner.synced when collections have changed
   */
  constructor(server, owner) {
    this.server = server;
    this.owner = owner;
    /** @type {State[]} */
    this.states = [];
    /** Of the sync that this page has begun. @type {AbortController | null} */
    this.running = null;
    this.current = "";
    this.bar = h("progress", { hidden: true, max: "1", "aria-label": "Progress of the sync" });
    this.list = h("ul");
    this.node = h("section", { class: "syncs", "aria-label": "Syncs", hidden: true }, h("h2", null, "Synced from sources"), this.list, this.bar);
    void this.load();
  }

  close() {
    this.running?.abort();
  }

  async load() {
    try {
      this.states = (await this.server.json("GET", "/api/syncs")).syncs;
      this.#draw();
    } catch (error) {
      this.owner.report(error);
    }
  }

  #draw() {
    this.node.hidden = !this.states.length;
    const entry = (/** @type {State} */ each) => {
      const here = each.toolkit === this.current;
      const act = () => (here ? this.running?.abort() : void this.#run(each.toolkit));
      const words = here ? "Stop" : "Sync now";
      const button = h("button", { type: "button", "aria-label": `${words}: ${each.toolkit}`, disabled: !here && (each.running || this.running !== null), onclick: act }, words);
      return h("li", null, h("span", null, h("bdi", null, each.toolkit), h("small", null, described(each)), each.error && h("small", { class: "bad", dir: "auto" }, each.error)), button);
    };
    keepingFocus(this.list, () => this.list.replaceChildren(...this.states.map(entry)));
  }

  /** @param {string} toolkit */
  async #run(toolkit) {
    const running = (this.running = new AbortController());
    this.current = toolkit;
    this.bar.removeAttribute("value");
    this.bar.hidden = false;
    this.owner.report(`${toolkit}: reading its source …`);
    this.#draw();
    try {
      const answer = await this.server.send("POST", `/api/syncs/${encodeURIComponent(toolkit)}`, { signal: running.signal, headers: { accept: "application/x-ndjson" } });
      await readLines(answer, (line) => {
        if (line.type === "progress" && line.total) this.bar.value = line.done / line.total;
        if (line.type === "error") throw new Problem(0, line.code, line.detail);
        if (line.type === "done") this.owner.report(`${toolkit} is synced${line.known === undefined ? "" : `: ${changes(line)}`}.`);
      });
    } catch (error) {
      this.owner.report(running.signal.aborted ? `The sync of ${toolkit} was stopped; the next one continues it.` : error);
    }
    this.running = null;
    this.current = "";
    this.bar.hidden = true;
    await Promise.all([this.load(), this.owner.synced()]);
  }
}

/** @param {State} state */
function described(state) {
  const time = (/** @type {string} */ moment) => new Date(moment).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return [
    state.records === undefined ? "" : count(state.records, "record"),
    state.succeeded_at ? `synced ${time(state.succeeded_at)}` : "never synced",
    state.running ? "running now" : state.failed_at ? `failed ${time(state.failed_at)}` : state.interrupted ? "interrupted: the next sync continues" : "",
    state.every && `every ${state.every}`,
  ].filter(Boolean).join(" · ");
}

/** @param {any} report */
function changes(report) {
  const outcomes = ["added", "changed", "unchanged", "removed", "failed"].filter((name) => report[name]);
  return [`${report.known.toLocaleString()} ${report.noun}`, ...outcomes.map((name) => `${report[name].toLocaleString()} ${name}`), ...report.notes].join(", ");
}

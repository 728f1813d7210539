// @ts-check
/** The drawer for authors: why an answer is what it is. */

import { copy } from "./blocks.js";
import { place } from "./chips.js";
import { duration, focused, h, icon } from "./dom.js";
import { certainty } from "./turn.js";

/** @typedef {import("./types.d.ts").Turn} Turn */

// A line of a script, or a source.
const PLACES = /(?<![\w./-])([\w./-]{1,200}\.[jt]s):(\d{1,7})(?!\w)|#ref:(\w{1,40})/g;
const TABS = ["Sources", "Trace", "Settings", "Events", "Check"];

const FORMULA = "Final = score × weight of where it came from (user, hook, auto) × factor of the reranker.";

/** @param {unknown} value */
export const number = (value) => (typeof value === "number" ? value.toFixed(2).replace(/^0\./, ".") : "–");

/**
 * The arithmetic of a source's place.
 * @param {any} entry
 */
export function formula(entry) {
  return h("small", { class: "formula", title: FORMULA }, `${number(entry.score)} × ${number(entry.weight)} ${entry.source ?? ""} × ${number(entry.rerank)} rerank`);
}

export class Why {
  /**
   * @param {HTMLElement} drawer
   * @param {import("./api.js").Server} server
   * @param {() => string} assistant
   */
  constructor(drawer, server, assistant) {
    this.drawer = drawer;
    this.server = server;
    this.assistant = assistant;
    this.tab = "Sources";
    this.marker = "";
    /** @type {Turn | null} */
    this.turn = null;
    /** @type {any[]} */
    this.messages = [];
    /** @type {any[]} */
    this.events = [];
    /** What had the focus before the drawer. @type {HTMLElement | null} */
    this.opener = null;
    /** The answer of the opener, which may be made anew. @type {Element | null} */
    this.around = null;
    this.body = h("div", { class: "body", role: "tabpanel", id: "why-panel", tabindex: "0" });
    this.tabs = TABS.map((name) =>
      h("button", { type: "button", class: "tab", role: "tab", "aria-controls": "why-panel", onclick: () => this.#choose(name) }, name),
    );
    drawer.append(
      h(
        "header",
        null,
        h("div", { role: "tablist", "aria-label": "Why", onkeydown: (/** @type {KeyboardEvent} */ event) => this.#step(event) }, ...this.tabs),
        h("button", { type: "button", onclick: () => this.#try() }, "Try other settings"),
        h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.close() }, icon("close")),
      ),
      this.body,
    );
    drawer.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /**
   * Show a turn; its steps come from the server, which keeps them for a while.
   * @param {Turn} turn
   * @param {string} marker
   * @param {any[]} messages those before it
   */
  async open(turn, marker, messages) {
    this.turn = turn;
    this.messages = messages;
    this.marker = marker;
    this.events = [];
    if (this.drawer.hidden) this.opener = focused();
    this.around = this.opener?.closest("article") ?? null;
    this.drawer.hidden = false;
    this.#choose("Sources");
    this.body.focus({ preventScroll: true }); // which would hide its beginning
    try {
      const path = `/api/turns/${encodeURIComponent(turn.id)}/events?trace=1`;
      const answer = await this.server.send("GET", path, { headers: { accept: "application/x-ndjson" } });
      const lines = (await answer.text()).split("\n").filter((line) => line.trim());
      this.events = lines.map((line) => JSON.parse(line));
    } catch {
      this.events = [];
    }
    if (this.turn === turn) this.#draw();
  }

  close() {
    const inside = this.drawer.contains(focused());
    this.drawer.hidden = true;
    this.turn = null;
    if (!inside || !this.opener) return;
    const { opener } = this;
    const again = [...(this.around?.querySelectorAll("button") ?? [])].find((each) => each.textContent === opener.textContent);
    (opener.isConnected ? opener : again)?.focus();
  }

  /** Ask the question of this turn in the workbench, after the conversation before it. */
  #try() {
    const question = this.turn?.question ?? "";
    const asked = `groundhook-asked ${this.assistant()}`; // an address has no room for messages
    if (this.messages.length) sessionStorage.setItem(asked, JSON.stringify({ question, messages: this.messages }));
    else sessionStorage.removeItem(asked);
    location.hash = String(new URLSearchParams({ a: this.assistant(), view: "workbench", q: question }));
  }

  /**
   * Go to another tab, as the arrows say.
   * @param {KeyboardEvent} event
   */
  #step(event) {
    const at = TABS.indexOf(this.tab);
    const back = getComputedStyle(this.drawer).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
    const forth = back === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const to = { [back]: at - 1, [forth]: at + 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = this.tabs.at(to % TABS.length);
    this.#choose(tab?.textContent ?? this.tab);
    tab?.focus();
  }

  /** @param {string} tab */
  #choose(tab) {
    this.tab = tab;
    this.drawer.scrollTop = 0;
    this.#draw();
  }

  #draw() {
    for (const tab of this.tabs) {
      const here = tab.textContent === this.tab;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    }
    this.body.setAttribute("aria-label", this.tab);
    const show = { Sources: () => this.#sources(), Trace: () => this.#trace(), Events: () => this.#events() };
    if (this.tab in show) this.body.replaceChildren(...show[/** @type {keyof typeof show} */ (this.tab)]());
    else void this.#loaded();
    this.body.querySelector(".here")?.scrollIntoView({ block: "center" });
  }

  get #nodes() {
    return this.events.filter((each) => each.type === "trace").map((each) => ({ ...each.node, at: each.at_ms }));
  }

  /** What the pool had, in its order, with the arithmetic of each place. */
  #sources() {
    const turn = /** @type {Turn} */ (this.turn);
    const pool = this.#nodes.findLast((each) => each.type === "merge" && each.data?.entries)?.data;
    const cited = new Map([...turn.citations.values()].map((each) => [each.marker, each]));
    const items = new Map(turn.searches.flatMap((each) => each.items).map((item) => [item.citation_id, item]));
    const entries = pool?.entries ?? [...items.values()];
    const row = (/** @type {any} */ entry, /** @type {number} */ n) => {
      const item = items.get(entry.citation_id);
      return h(
        "tr",
        { class: entry.citation_id === this.marker ? "here" : null },
        h("td", { class: "n" }, String(n + 1)),
        h(
          "td",
          null,
          h("b", { dir: "auto" }, entry.title || (item ? place(item) : "")),
          h("small", null, [item && place(item), cited.has(entry.citation_id) ? "cited" : "not cited"].filter(Boolean).join(" · ")),
          pool && formula(entry),
        ),
        h("td", { class: "n" }, number(entry.final ?? entry.score)),
      );
    };
    const dropped = (pool?.dropped ?? []).map((/** @type {any} */ entry) =>
      h(
        "tr",
        { class: `dropped${entry.citation_id === this.marker ? " here" : ""}` },
        h("td", { class: "n" }, "–"),
        h("td", null, h("span", { dir: "auto" }, entry.title ?? ""), h("small", null, `dropped: ${entry.dropped}`)),
        h("td", { class: "n" }, number(entry.final ?? entry.score)),
      ),
    );
    if (!entries.length && !dropped.length) {
      const reasons = turn.searches.flatMap((each) => each.explanation || each.error || []);
      if (reasons.length) return [...new Set(reasons)].map((each) => h("p", { dir: "auto" }, each));
      return [h("p", { class: "note" }, "This turn searched for nothing, or found nothing.")];
    }
    return [
      ...this.#judged(turn),
      h("p", { class: "note" }, pool ? FORMULA : this.events.length ? "The hook chose the sources itself." : "The steps of this turn are no longer kept; this is what was found."),
      h("table", null, h("thead", null, h("tr", null, h("th", { class: "n" }, "#"), h("th", null, "Source"), h("th", { class: "n" }, pool ? "Final" : "Score"))), h("tbody", null, ...entries.map(row), ...dropped)),
    ];
  }

  /**
   * How certain each search was, and what that rests on.
   * @param {Turn} turn
   */
  #judged(turn) {
    const words = (/** @type {any} */ judged) => {
      const held = judged.words === null ? "the first is in another language" : `the first has ${Math.round(judged.words * 100)} % of the words that matter`;
      const lacks = judged.lacks && `it lacks what is asked for: ${judged.lacks}`;
      return [`the nearest passage has a similarity of ${number(judged.near)}`, held, lacks].filter(Boolean).join(", ");
    };
    const steps = this.#nodes.filter((each) => each.type === "vector_search" && each.data?.judged);
    const passages = steps.map(({ label, data }) => `${label}: ${data.judged.certainty}; ${words(data.judged)}`);
    const rows = turn.searches.filter((each) => each.certainty && each.read_as && each.read_as !== each.query).map((each) => `${each.query}: ${each.certainty}; read as ${each.read_as}`);
    const reasons = [...passages, ...rows].map((each) => h("li", { dir: "auto" }, each));
    const sure = certainty(turn);
    return sure || reasons.length ? [h("p", null, sure ? `Certainty: ${sure}` : "Certainty of the searches"), h("ul", { class: "note" }, ...reasons)] : [];
  }

  #trace() {
    /** @type {Map<string, any>} */
    const steps = new Map();
    for (const node of this.#nodes) {
      const before = steps.get(node.id);
      steps.set(node.id, { ...node, began: before?.began ?? node.at });
    }
    if (!steps.size) return [h("p", { class: "note" }, "The steps of this turn are no longer kept, or are still under way.")];
    const all = [...steps.values()];
    const end = Math.max(1, ...all.map((each) => each.began + each.duration_ms));
    const depth = (/** @type {any} */ step) => {
      let deep = 0;
      for (let at = steps.get(step.parent); at && deep < 20; at = steps.get(at.parent)) deep += 1;
      return deep;
    };
    const warnings = this.events.filter((each) => each.type === "warning");
    const shown = warnings.map((each) => this.#linked("bad", [each.message, each.file && `${each.file}${each.line ? `:${each.line}` : ""}`, each.hint].filter(Boolean).join(" — ")));
    const drawn = all.map((step) => {
      if (step.type === "log") return this.#linked(`log ${step.data?.level ?? ""}`, `${step.data?.level ?? "log"}: ${step.label}`);
      const bar = h("i");
      bar.style.insetInlineStart = `${(step.began / end) * 100}%`;
      bar.style.width = `${(step.duration_ms / end) * 100}%`;
      const name = h("span", { class: "name", title: step.label }, `${step.type}${step.label ? ` · ${step.label}` : ""}`);
      name.style.paddingInlineStart = `${depth(step) * 12}px`;
      return h(
        "details",
        { class: `step ${step.status}` },
        h("summary", null, name, h("span", { class: "axis", "aria-hidden": "true" }, bar), h("span", { class: "n" }, duration(step.duration_ms))),
        h("pre", { tabindex: "0" }, JSON.stringify(step.data, null, 1)),
      );
    });
    return [...drawn, ...shown];
  }

  /**
   * Return a line whose scripts and sources are buttons: for the lines of the script, and for the
   * source among those of the turn.
   * @param {string} kind
   * @param {string} text
   */
  #linked(kind, text) {
    const line = h("p", { class: kind, dir: "auto" });
    const whole = h("div", null, line);
    let end = 0;
    for (const found of text.matchAll(PLACES)) {
      const [said, file, number, marker] = found;
      line.append(text.slice(end, found.index));
      end = found.index + said.length;
      if (file) line.append(this.#script(whole, said, file, number));
      else line.append(h("button", { type: "button", class: "place", onclick: () => this.#source(marker) }, said));
    }
    line.append(text.slice(end));
    return whole;
  }

  /** @param {string} marker */
  #source(marker) {
    this.marker = `#ref:${marker}`;
    this.#choose("Sources");
    this.body.focus();
  }

  /**
   * Return a button that shows and hides the lines of a script.
   * @param {HTMLElement} place
   * @param {string} words
   * @param {string} file
   * @param {string} line
   */
  #script(place, words, file, line) {
    /** @type {HTMLElement | null} */
    let shown = null;
    const button = h("button", { type: "button", class: "place", "aria-expanded": "false" }, words);
    button.addEventListener("click", async () => {
      if (shown) {
        shown.remove();
        shown = null;
      } else {
        shown = h("pre", { tabindex: "0", dir: "ltr", class: "script" }, "Loading …");
        place.append(shown);
        const made = shown;
        try {
          const path = `/api/assistants/${encodeURIComponent(this.assistant())}/scripts?${new URLSearchParams({ file, line })}`;
          const found = await this.server.json("GET", path);
          made.replaceChildren(...found.lines.map((/** @type {string} */ each, /** @type {number} */ n) => h(found.first + n === Number(line) ? "mark" : "span", null, `${found.first + n}  ${each}\n`)));
        } catch (error) {
          made.textContent = error instanceof Error ? error.message : String(error);
        }
      }
      button.setAttribute("aria-expanded", String(shown !== null));
    });
    return button;
  }

  #events() {
    if (!this.events.length) return [h("p", { class: "note" }, "The events of this turn are no longer kept, or are still under way.")];
    const types = [...new Set(this.events.map((each) => each.type))].sort();
    const list = h("div");
    const draw = () => {
      const shown = this.events.filter((each) => !select.value || each.type === select.value);
      list.replaceChildren(
        ...shown.map((each) => {
          const pre = h("pre", { tabindex: "0" });
          const details = h("details", null, h("summary", null, `${each.at_ms} ms · ${each.type}`), pre);
          details.addEventListener("toggle", () => (pre.textContent = JSON.stringify(each, null, 1)));
          return details;
        }),
      );
    };
    const select = h("select", { "aria-label": "Type", onchange: draw }, h("option", { value: "" }, "All types"), ...types.map((type) => h("option", { value: type }, type)));
    const button = h("button", { type: "button", onclick: () => copy(this.events.map((each) => JSON.stringify(each)).join("\n"), button) }, "Copy");
    draw();
    return [h("div", { class: "filter" }, select, button), list];
  }

  /** The settings and the check, which are the assistant's and not the turn's. */
  async #loaded() {
    const { tab } = this;
    this.body.replaceChildren(h("p", { class: "note" }, "Loading …"));
    let made;
    try {
      made = tab === "Settings" ? await this.#settings() : await this.#check();
    } catch (error) {
      made = [h("p", { class: "bad", role: "alert" }, error instanceof Error ? error.message : String(error))];
    }
    if (tab === this.tab) this.body.replaceChildren(...made);
  }

  async #settings() {
    const path = `/api/assistants/${encodeURIComponent(this.assistant())}/settings`;
    const { settings } = await this.server.json("GET", path);
    const changed = (/** @type {any} */ each) => each.layer !== "defaults";
    settings.sort((/** @type {any} */ a, /** @type {any} */ b) => Number(changed(b)) - Number(changed(a)));
    const body = h("tbody");
    const draw = () => {
      const words = input.value.toLowerCase();
      const shown = settings.filter((/** @type {any} */ each) => each.key.toLowerCase().includes(words));
      body.replaceChildren(
        ...shown.map((/** @type {any} */ each) =>
          h("tr", null, h("td", null, each.key, h("small", null, [each.layer, each.place].filter(Boolean).join(" · "))), h("td", { class: "formula" }, JSON.stringify(each.value) ?? "")),
        ),
      );
    };
    const input = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the settings", oninput: draw });
    draw();
    return [h("div", { class: "filter" }, input), h("table", null, h("thead", null, h("tr", null, h("th", null, "Setting"), h("th", null, "Value"))), body)];
  }

  async #check() {
    const found = (await this.server.json("GET", "/api/check")).problems;
    // Those of other assistants are no reason for this one's answers.
    const own = `assistants/${this.assistant().replaceAll(".", "/")}/`;
    const problems = found.filter((/** @type {any} */ each) => !each.place.startsWith("assistants/") || each.place.startsWith(own));
    if (!problems.length) return [h("p", null, "The files of this assistant and of the app have no problems.")];
    return problems.map((/** @type {any} */ each) =>
      h("details", { open: true }, h("summary", { class: each.severity === "error" ? "bad" : null }, `${each.severity}: ${each.message}`), h("p", { class: "note" }, [each.place, each.hint].filter(Boolean).join(" — "))),
    );
  }
}

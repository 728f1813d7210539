// @ts-check
/** One question with its answer: the lanes of its searches, the prose, and what can be done. */

import { blockNode, copy } from "./blocks.js";
import { chips, kind, kindWithin, place } from "./chips.js";
import { duration, h, icon, keepingFocus } from "./dom.js";
import { errorWords } from "./errors.js";
import { fileList } from "./files.js";
import { hookMessage } from "./messages.js";
import { certainty } from "./turn.js";
import { t, tn } from "./words.js";

const MOST_EXPORTED = 10_000; // rows that the server sends of one table

/** @typedef {import("./types.d.ts").Turn} Turn */
/** @typedef {import("./types.d.ts").Search} Search */
/** @typedef {import("./types.d.ts").Item} Item */
/** @typedef {import("./types.d.ts").Citation} Citation */

/**
 * @typedef {object} Owner the conversation, as an answer needs it
 * @property {boolean} kept whether the server keeps it, so that it has branches and feedback
 * @property {boolean} busy whether a turn is under way
 * @property {(turn: Turn) => import("./chips.js").Reading} reading
 * @property {(text: string) => void} ask
 * @property {(turn: Turn) => void} again another answer, or the same question once more
 * @property {(turn: Turn) => void} edit
 * @property {(turn: Turn) => boolean} last whether nothing follows it
 * @property {(turn: Turn, approved: boolean, answer?: string) => void} decide about the calls that wait
 * @property {(table: import("./types.d.ts").LongTable) => Promise<void>} download all rows of a table
 * @property {(id: string) => void} show the branch of a message
 * @property {(turn: Turn, rating: number, comment: string) => Promise<void>} rate
 * @property {((turn: Turn, marker?: string) => void) | null} why
 */

const CERTAINTIES = { sure: t("sure"), partial: t("sure only in part"), none: t("nothing found that answers this") };

const QUESTIONS = {
  of: (/** @type {number} */ n, /** @type {number} */ all) => t("Question {n} of {all}", { n, all }),
  before: t("Question before"),
  next: t("Next question"),
};
const ANSWERS = {
  of: (/** @type {number} */ n, /** @type {number} */ all) => t("Answer {n} of {all}", { n, all }),
  before: t("Answer before"),
  next: t("Next answer"),
};

export class AnswerView {
  /**
   * @param {Turn} turn
   * @param {Owner} owner
   */
  constructor(turn, owner) {
    this.turn = turn;
    this.owner = owner;
    this.reading = owner.reading(turn);
    /** @type {HTMLElement[]} */
    this.nodes = [];
    this.drawn = new Map();
    this.question = h("div", { class: "ask" });
    this.lanes = h("div");
    this.before = h("div", { class: "before" });
    this.prose = h("div", { class: "prose" });
    this.after = h("div");
    this.foot = h("div");
    this.element = h("article", { class: "turn" }, this.question, this.lanes, this.before, this.prose, this.after, this.foot);
    this.update();
  }

  /** Show the turn as it is now; only what changed is made anew. */
  update() {
    const { turn } = this;
    const { busy } = this.owner;
    // Those who listen go from answer to answer by these names.
    this.element.setAttribute("aria-label", turn.question.slice(0, 100) || t("Question"));
    this.#draw(this.question, [turn.question, turn.files.length, turn.questionId, turn.questionSiblings, busy], () => this.#question());
    this.#draw(this.lanes, [turn.searches, turn.state, turn.blocks.length > 0], () => this.#lanes());
    this.#draw(this.before, [turn.reasoning.length, turn.tools, turn.messages], () => this.#before());
    this.#prose();
    this.#draw(this.after, [turn.troubles, turn.warnings, turn.state, turn.end?.finish_reason, turn.searches.map((each) => [each.readings, each.tables]), turn.pending, this.owner.last(turn), busy], () => this.#after());
    this.#draw(this.foot, [turn.state, turn.end?.timings, turn.messageId, turn.siblings, turn.feedback, busy], () => this.#foot());
  }

  /**
   * @param {HTMLElement} place
   * @param {unknown} of what it shows; it is made anew when that changes
   * @param {() => (Node | string | null | undefined | false | 0)[]} make
   */
  #draw(place, of, make) {
    const seen = JSON.stringify(of);
    if (this.drawn.get(place) === seen) return;
    this.drawn.set(place, seen);
    keepingFocus(place, () => place.replaceChildren(...make().flatMap((each) => (each ? [each] : []))));
  }

  #question() {
    const { turn, owner } = this;
    if (!turn.question && !turn.files.length) return [];
    const canEdit = owner.kept && turn.questionId && !owner.busy && !turn.decision;
    return [
      turn.question && h("p", { dir: "auto" }, turn.question),
      fileList(turn.files),
      h(
        "span",
        { class: "tools" },
        this.#branches(turn.questionId, turn.questionSiblings, QUESTIONS),
        canEdit && h("button", { type: "button", onclick: () => owner.edit(turn) }, t("Edit")),
      ),
    ];
  }

  #lanes() {
    const { turn } = this;
    if (!turn.searches.length) return [];
    const running = turn.state !== "done" && turn.state !== "broken";
    const end = Math.max(1, ...turn.searches.map((each) => each.began + (each.duration_ms || 1)));
    // What the user refers to is named, not searched for in other words.
    const asked = new Set(turn.searches.filter((each) => each.source !== "user").map((each) => each.query));
    const [only] = asked;
    const other = asked.size === 1 && only.trim() !== turn.question.trim() ? only : "";
    const lanes = turn.searches.map((each) => lane(each, end, asked.size > 1 || each.source === "user"));
    const read = turn.searches.flatMap((each) => account(each));
    const all = [
      other && h("p", { class: "understood" }, h("span", null, t("Understood as"), " "), h("bdi", null, other)),
      ...lanes,
      ...read,
    ];
    if (running && !turn.blocks.length) return [h("div", { class: "lanes" }, ...all)];
    const longest = Math.max(...turn.searches.map((each) => each.duration_ms));
    const said = searched(turn, longest ? `, ${duration(longest)}` : "");
    const summary = h("summary", null, h("span", null, said.found), said.failed && h("span", { class: "bad" }, ` · ${said.failed}`));
    return [
      other && h("p", { class: "understood" }, h("span", null, t("Understood as"), " "), h("bdi", null, other)),
      h("details", { class: "lanes" }, summary, ...lanes, ...read),
    ];
  }

  #before() {
    const { turn } = this;
    return [
      turn.reasoning &&
        h("details", { class: "aside" }, h("summary", null, t("Reasoning")), h("p", { dir: "auto", class: "plain" }, turn.reasoning)),
      ...turn.tools.map((each) =>
        h(
          "details",
          { class: "aside" },
          h(
            "summary",
            null,
            each.complete ? t("Called {name}", { name: each.name }) : t("Calling {name}", { name: each.name }),
            each.error ? h("span", { class: "bad" }, ` · ${each.error}`) : each.duration_ms ? ` · ${duration(each.duration_ms)}` : each.progress && ` · ${each.progress}`,
          ),
          h("pre", { tabindex: "0" }, JSON.stringify(each.arguments, null, 1) ?? ""),
          each.complete && h("pre", { tabindex: "0" }, shortJson(each.result)),
        ),
      ),
      ...turn.messages.map((each) => hookMessage(each.message, this.owner.ask)),
    ];
  }

  #prose() {
    if (this.turn.unchanged < Math.max(this.turn.blocks.length, this.nodes.length)) keepingFocus(this.prose, () => this.#blocks());
    const { turn, nodes } = this;
    const running = turn.state === "running" || turn.state === "waiting";
    this.prose.classList.toggle("running", running && nodes.length > 0);
    this.element.classList.toggle("thinking", running && nodes.length === 0);
  }

  /** Make the blocks that have changed. */
  #blocks() {
    const { turn, nodes } = this;
    const chipsOf = (/** @type {string[]} */ markers) => chips(markers, this.reading);
    for (let n = turn.unchanged; n < Math.max(turn.blocks.length, nodes.length); n += 1) {
      const block = turn.blocks[n];
      const made = block && blockNode(block, chipsOf);
      if (made && nodes[n]) nodes[n].replaceWith(made);
      else if (made) this.prose.append(made);
      else nodes[n]?.remove();
      if (made) nodes[n] = made;
    }
    nodes.length = turn.blocks.length;
    turn.unchanged = turn.blocks.length;
  }

  #after() {
    const { turn, owner } = this;
    const readings = turn.searches.flatMap((each) => each.readings ?? []);
    const stopped = turn.troubles.some((each) => each.code === "stopped");
    const troubles = turn.troubles.filter((each) => each.code !== "stopped");
    const broken = turn.state === "broken";
    const again = (broken || turn.troubles.length > 0) && !owner.busy && !turn.decision;
    return [
      turn.state === "waiting" && h("p", { class: "note", role: "status" }, t("The connection was lost; trying again …")),
      ...troubles.map((each) =>
        h(
          "div",
          { class: "trouble", role: owner.last(turn) && "alert" },
          h("p", { dir: "auto" }, sentence(errorWords(each.code, each.message))),
          each.hint && h("p", { dir: "auto" }, sentence(each.hint)),
          each.file && h("p", { class: "note" }, `${each.file}${each.line ? `:${each.line}` : ""}`),
        ),
      ),
      ...turn.warnings
        .filter((each) => each.code === "part_not_read")
        .map((each) => h("p", { class: "note", dir: "auto" }, sentence(each.message))),
      stopped && h("p", { class: "note" }, t("Stopped.")),
      broken && !turn.troubles.length && h("p", { class: "trouble", role: "alert" }, t("The answer broke off; this is what had come.")),
      turn.end?.finish_reason === "length" && h("p", { class: "note" }, t("The answer reached its limit of length.")),
      owner.why &&
        turn.end?.data != null &&
        h(
          "details",
          { class: "aside" },
          h("summary", null, "Data of the hook"),
          h("pre", { tabindex: "0" }, shortJson(turn.end.data)),
        ),
      readings.length > 0 &&
        h(
          "div",
          { class: "readings" },
          h("span", { class: "note" }, t("It can also be read as")),
          ...readings.map((each) =>
            h("button", { type: "button", dir: "auto", disabled: owner.busy, onclick: () => owner.ask(each.read_as) }, `${each.read_as}${each.total === null ? "" : ` (${each.total})`}`),
          ),
        ),
      ...turn.searches.flatMap((each) => (each.tables ?? []).flatMap((table) => (table.csv ? [this.#whole(table)] : []))),
      turn.pending.length > 0 && this.#pending(),
      again && h("button", { type: "button", class: "quiet", onclick: () => owner.again(turn) }, t("Try again")),
    ];
  }

  /**
   * All rows of a table of which the answer shows a part.
   * @param {import("./types.d.ts").LongTable} table
   */
  #whole(table) {
    const state = h("span", { class: "note", role: "status" });
    const counted = tn(table.total, "{n} row", "{n} rows");
    const rows = table.total_is === "at_least" ? t("at least {rows}", { rows: counted }) : counted;
    const words = table.total > MOST_EXPORTED ? t("Download {n} of {rows} (CSV)", { n: MOST_EXPORTED, rows }) : t("Download all {rows} (CSV)", { rows });
    const download = h("button", { type: "button", class: "quiet" }, words);
    download.addEventListener("click", async () => {
      state.textContent = "";
      try {
        await this.owner.download(table);
      } catch (error) {
        state.textContent = error instanceof Error ? sentence(error.message) : String(error);
      }
    });
    return h("p", { class: "whole" }, h("bdi", { class: "note" }, table.name), " ", download, " ", state);
  }

  /** The calls that wait, and what can be decided about them. */
  #pending() {
    const { turn, owner } = this;
    const waits = turn.state === "done" && owner.last(turn);
    const asked = turn.pending.find((each) => each.question);
    if (asked) return waits && this.#asks(asked);
    const act = (/** @type {boolean} */ approved) =>
      h("button", { type: "button", disabled: owner.busy, onclick: () => owner.decide(turn, approved) }, approved ? t("Approve") : t("Refuse"));
    return h(
      "section",
      { class: "pending", "aria-label": t("Approval") },
      h("p", { class: "note" }, waits ? t("This runs only when you approve it:") : t("This waited for an approval:")),
      ...turn.pending.map((each) =>
        h("div", null, h("p", { dir: "auto" }, each.name), h("pre", { tabindex: "0" }, JSON.stringify(each.arguments, null, 1) ?? "")),
      ),
      waits && h("div", { class: "readings" }, act(true), act(false)),
    );
  }

  /**
   * What answers a question of a hook, which is the text above.
   * @param {import("./types.js").Pending} asked
   */
  #asks(asked) {
    const { turn, owner } = this;
    const act = (/** @type {string} */ words, /** @type {boolean} */ approved, /** @type {string} */ answer) =>
      h("button", { type: "button", dir: "auto", disabled: owner.busy, onclick: () => owner.decide(turn, approved, answer) }, words);
    const choices = asked.choices ?? [];
    const field = h("input", { type: "text", dir: "auto", "aria-label": t("Your answer"), maxlength: "10000" });
    const send = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (field.value.trim()) owner.decide(turn, true, field.value.trim());
    };
    return h(
      "section",
      { class: "pending", "aria-label": t("The assistant asks") },
      choices.length === 0 && h("form", { class: "readings", onsubmit: send }, field, h("button", { type: "submit", disabled: owner.busy }, t("Answer"))),
      h("div", { class: "readings" }, ...choices.map((each) => act(each, true, each)), act(t("No answer"), false, "")),
    );
  }

  #foot() {
    const { turn, owner } = this;
    if (turn.state !== "done") return [];
    const canChange = !owner.busy;
    const copyButton = h("button", { type: "button", onclick: () => copy(withFootnotes(turn), copyButton) }, t("Copy"));
    return [
      h(
        "div",
        { class: "acts" },
        copyButton,
        canChange && !turn.decision && h("button", { type: "button", onclick: () => owner.again(turn) }, t("Regenerate")),
        this.#branches(turn.messageId, turn.siblings, ANSWERS),
        ...(owner.kept && turn.messageId ? this.#rating() : []),
        owner.why && turn.id && h("button", { type: "button", lang: "en", dir: "ltr", onclick: () => owner.why?.(turn) }, "Why?"),
        h("span", { class: "facts" }, facts(turn)),
      ),
      this.#sources(),
    ];
  }

  /**
   * Return the way through the branches that begin beside a message: ‹ 2 / 3 ›.
   * @param {string} id
   * @param {string[]} siblings
   * @param {{ of: (n: number, all: number) => string, before: string, next: string }} words
   */
  #branches(id, siblings, words) {
    if (siblings.length < 2) return null;
    const at = siblings.indexOf(id);
    const step = (/** @type {number} */ to, /** @type {"back" | "on"} */ name, /** @type {string} */ label) =>
      h("button", { type: "button", "aria-label": label, disabled: this.owner.busy || !siblings[to], onclick: () => this.owner.show(siblings[to]) }, icon(name));
    return h(
      "span",
      { class: "branches", role: "group", "aria-label": words.of(at + 1, siblings.length) },
      step(at - 1, "back", words.before),
      h("span", null, `${at + 1} / ${siblings.length}`),
      step(at + 1, "on", words.next),
    );
  }

  #rating() {
    const { turn, owner } = this;
    const rating = turn.feedback?.rating ?? 0;
    const button = (/** @type {number} */ value, /** @type {string} */ label) =>
      h("button", { type: "button", "aria-pressed": String(rating === value), onclick: () => this.#rate(rating === value ? 0 : value) }, label);
    return [
      button(1, t("Helpful")),
      button(-1, t("Not helpful")),
      rating !== 0 &&
        h(
          "form",
          {
            class: "comment",
            onsubmit: (/** @type {SubmitEvent} */ event) => {
              event.preventDefault();
              const input = /** @type {HTMLFormElement} */ (event.target).querySelector("input");
              void owner.rate(turn, rating, input?.value ?? "");
            },
          },
          h("input", { type: "text", maxlength: "10000", placeholder: rating > 0 ? t("What was good?") : t("What was wrong?"), "aria-label": t("Comment"), value: turn.feedback?.comment ?? "", dir: "auto" }),
          h("button", { type: "submit" }, turn.feedback?.comment ? t("Saved") : t("Save")),
        ),
    ];
  }

  /** @param {number} value */
  async #rate(value) {
    await this.owner.rate(this.turn, value, this.turn.feedback?.comment ?? "");
    this.update();
  }

  #sources() {
    const { turn } = this;
    const cited = [...turn.citations.values()].filter((each) => each.item);
    const known = new Set(cited.map((each) => each.item?.citation_id));
    /** @type {Map<string, Item>} */
    const others = new Map();
    for (const item of turn.searches.flatMap((each) => each.items)) {
      if (!known.has(item.citation_id)) others.set(item.citation_id, item);
    }
    if (!cited.length && !others.size) return null;
    const more = others.size > 0 && t("{n} more found", { n: others.size });
    const said = cited.length
      ? [tn(cited.length, "{n} source cited", "{n} sources cited"), more].filter(Boolean).join(" · ")
      : tn(others.size, "{n} source found", "{n} sources found");
    const entry = (/** @type {Citation} */ citation) => {
      const item = /** @type {Item} */ (citation.item);
      return h(
        "li",
        null,
        h("button", { type: "button", disabled: !item.url, onclick: () => this.reading.open(citation) }, h("bdi", null, item.title || place(item))),
        h("span", { class: `note ${item.type}` }, ` ${place(item)}`),
        item.also?.length ? h("span", { class: "note" }, ` ${tn(item.also.length, "and {n} other place", "and {n} other places")}`) : "",
      );
    };
    return h(
      "details",
      { class: "sources" },
      h("summary", null, h("span", null, said)),
      h("ol", null, ...cited.map(entry)),
      others.size > 0 && h("p", { class: "note" }, t("Found, and not cited")),
      h("ul", null, ...[...others.values()].map((item) => entry({ marker: item.citation_id, verdict: "ok", item }))),
    );
  }
}

/**
 * Return what the searches of a turn found, and which failed.
 * @param {Turn} turn
 * @param {string} [more] behind what was found
 */
export function searched(turn, more = "") {
  const kinds = [...new Set(turn.searches.map((each) => kindWithin(each.search_type)))].join(", ");
  const found = turn.searches.reduce((sum, each) => sum + each.items.length, 0);
  const failed = turn.searches.filter((each) => each.error && each.error !== "stopped");
  return {
    found: t("Searched {kinds}: {found}", { kinds, found: `${tn(found, "{n} result", "{n} results")}${more}` }),
    failed: failed.map((each) => t("{kind} failed", { kind: kindWithin(each.search_type) })).join(", "),
  };
}

/**
 * Return the line of a search.
 * @param {Search} search
 * @param {number} end
 * @param {boolean} named whether the query is shown, since the searches differ in it
 */
function lane(search, end, named) {
  const failed = Boolean(search.error) && search.error !== "stopped";
  const bar = h("i");
  bar.style.insetInlineStart = `${(search.began / end) * 100}%`;
  bar.style.width = search.complete ? `${Math.max(2, (search.duration_ms / end) * 100)}%` : "100%";
  const says = !search.complete
    ? t("searching …")
    : failed
      ? search.error
      : search.error === "stopped"
        ? t("stopped")
        : `${tn(search.items.length, "{n} result", "{n} results")} · ${duration(search.duration_ms)}`;
  return h(
    "div",
    { class: `lane ${search.search_type}${failed ? " failed" : ""}${search.complete ? "" : " running"}` },
    h("b", { dir: "auto", title: search.query }, named ? search.query : kind(search.search_type)),
    h("span", { class: "bar", "aria-hidden": "true" }, bar),
    h("span", { class: failed ? "bad" : null }, says),
  );
}

/**
 * Return what a search says of how it read the question.
 * @param {Search} search
 */
function account(search) {
  const said = [];
  if (search.read_as && search.read_as !== search.query) {
    said.push(h("p", { class: "understood" }, h("span", null, t("Read as"), " "), h("bdi", null, search.read_as)));
  }
  if (search.unread?.length) {
    said.push(h("p", { class: "understood bad" }, t("Not understood:"), " ", h("bdi", null, search.unread.join(", "))));
  }
  return said;
}

/**
 * Return what a turn says of its answer: how sure it is, and how much of it is cited.
 * @param {Turn} turn
 */
export function judged(turn) {
  const { end } = turn;
  if (!end?.content) return []; // one that failed was no answer
  const said = [];
  const sure = certainty(turn);
  // A refusal claims nothing that could be cited, nor does a question back, which is none either.
  const declined = sure === "none" && !end.claims?.cited && turn.searches.every((each) => !each.items.length);
  if (declined) return turn.searches.some((each) => each.readings?.length) ? [] : [CERTAINTIES.none];
  if (sure) said.push(CERTAINTIES[/** @type {keyof typeof CERTAINTIES} */ (sure)] ?? sure);
  else if (end.grounded !== null && end.grounded !== undefined) said.push(end.grounded ? t("grounded") : t("no source cited"));
  const claims = end.claims;
  if (claims && typeof claims === "object") {
    const all = (claims.cited ?? 0) + (claims.uncited ?? 0);
    if (all) said.push(tn(all, "{cited} of {n} claim cited", "{cited} of {n} claims cited", { cited: claims.cited ?? 0 }));
    if (claims.verified) said.push(t("{n} verified", { n: claims.verified }));
    if (claims.doubtful) said.push(t("{n} doubtful", { n: claims.doubtful }));
  }
  return said;
}

/** @param {Turn} turn */
function facts(turn) {
  const { end } = turn;
  const said = judged(turn);
  if (end?.timings?.total) said.push(duration(end.timings.total));
  if (end?.usage?.cost) said.push(`$${end.usage.cost.toPrecision(2)}`);
  return said.join(" · ");
}

/** @param {string} text */
function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** @param {unknown} value */
function shortJson(value) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "");
  return text.length > 4000 ? `${text.slice(0, 4000)}…` : text;
}

/**
 * Return the answer as Markdown with its sources as footnotes.
 * @param {Turn} turn
 */
export function withFootnotes(turn) {
  let text = turn.end?.content ?? "";
  /** @type {string[]} */
  const notes = [];
  for (const { marker, item } of turn.citations.values()) {
    if (!item || !text.includes(marker)) continue;
    /** @type {number} */
    const number = notes.length + 1;
    text = text.replaceAll(marker, `[^${number}]`);
    notes.push(`[^${number}]: ${item.title || place(item)}${item.url ? ` <${item.url}>` : ""}`);
  }
  return [text.trim(), notes.join("\n")].filter(Boolean).join("\n\n");
}

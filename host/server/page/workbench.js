// @ts-check
/** The workbench of authors: questions as in the assistant's files and with a trial, side by side. */

import { Problem, readLines } from "./api.js";
import { blockNode, copy } from "./blocks.js";
import { count, duration, h, keepingFocus } from "./dom.js";
import { save } from "./table.js";
import { formula, number } from "./why.js";

/** @typedef {import("./types.d.ts").TrialAnswer} TrialAnswer */

const NAMES = ["As in the files", "Trial"];
const EMPTY = '{\n  "search": { "rerank": { "top_n": 3 } }\n}';

export class Workbench {
  /**
   * @param {HTMLElement} place
   * @param {import("./api.js").Server} server
   * @param {string} assistant
   * @param {string} question what is asked first; empty: what was asked last
   */
  constructor(place, server, assistant, question) {
    this.server = server;
    this.assistant = assistant;
    this.kept = `groundhook-trial ${assistant}`;
    const kept = JSON.parse(sessionStorage.getItem(this.kept) ?? "{}");
    this.questions = h("textarea", { id: "questions", rows: "2", dir: "auto", placeholder: "One question on each line" });
    this.questions.value = question || kept.questions || "";
    this.trial = h("textarea", { id: "trial", rows: "7", class: "code", spellcheck: "false", dir: "ltr" });
    this.trial.value = kept.trial || EMPTY;
    const asked = JSON.parse(sessionStorage.getItem(`groundhook-asked ${assistant}`) ?? "{}");
    /** @type {any[] | null} rows that have more than a question: of a suite, or a follow-up */
    this.rows = question && asked.question === question ? [asked] : null;
    this.key = h("input", { list: "settings", "aria-label": "Setting", placeholder: "search.kb.threshold", autocomplete: "off", dir: "ltr" });
    this.value = h("input", { "aria-label": "Value", placeholder: "0.2", autocomplete: "off", dir: "ltr" });
    this.keys = h("datalist", { id: "settings" });
    this.notice = h("p", { class: "notice", role: "status" });
    this.run = h("button", { type: "submit", class: "go" }, "Run both");
    this.results = h("div", { class: "results" });
    this.file = h("input", { type: "file", accept: ".jsonl", hidden: true, onchange: () => this.#load() });
    const form = h(
      "form",
      { class: "trial" },
      h("div", null, h("label", { for: "questions" }, "Questions"), this.questions, h("div", { class: "row" }, h("button", { type: "button", onclick: () => this.file.click() }, "From a suite …"), this.file)),
      h(
        "div",
        null,
        h("label", { for: "trial" }, "Trial: keys of package.yao, and prompts. It is never written to files."),
        this.trial,
        h("div", { class: "row" }, this.key, this.value, h("button", { type: "submit" }, "Change"), this.keys),
      ),
      h("div", { class: "row" }, this.run, h("button", { type: "button", onclick: () => this.#diff() }, "Show as a diff"), this.notice),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      // Enter in a field presses the first button, which changes the trial.
      if (event.submitter !== this.run) this.changing = this.#change();
      else if (this.stop) this.stop.abort();
      else void this.#run();
    });
    this.questions.addEventListener("input", () => (this.rows = null));
    /** @type {AbortController | null} */
    this.stop = null;
    this.changing = Promise.resolve(); // what a run waits for
    place.replaceChildren(h("div", { class: "view workbench", lang: "en", dir: "ltr" }, form, this.results));
    if (this.rows) this.#report(`Asked after ${count(asked.messages.length, "message")} of its conversation.`);
    void this.#settings();
    this.questions.focus();
  }

  close() {
    this.stop?.abort();
  }

  async #settings() {
    try {
      const { settings } = await this.server.json("GET", `/api/assistants/${encodeURIComponent(this.assistant)}/settings`);
      this.keys.replaceChildren(...settings.map((/** @type {any} */ each) => h("option", { value: each.key }, JSON.stringify(each.value) ?? "")));
    } catch (error) {
      this.#report(error);
    }
  }

  /** @param {unknown} error */
  #report(error) {
    this.notice.classList.toggle("bad", error instanceof Error);
    this.notice.textContent = error instanceof Error ? error.message : String(error);
  }

  /** Return the trial as it is written. Throws a SyntaxError. */
  #written() {
    const trial = JSON.parse(this.trial.value.trim() || "{}");
    if (typeof trial !== "object" || !trial || Array.isArray(trial)) throw new SyntaxError("The trial must be an object.");
    return trial;
  }

  #keep() {
    sessionStorage.setItem(this.kept, JSON.stringify({ trial: this.trial.value, questions: this.questions.value }));
  }

  /** Set a value in the trial by its dotted key, if the server takes it. */
  async #change() {
    if (this.key.value.trim() && !this.value.value) return this.value.focus();
    try {
      const trial = this.#written();
      const steps = this.key.value.trim().split(".");
      if (!steps[0] || steps.some((step) => !/^\w+$/.test(step) || step === "__proto__")) throw new Error("Name a setting, such as search.kb.threshold.");
      let at = trial;
      for (const step of steps.slice(0, -1)) {
        if (typeof at[step] !== "object" || !at[step]) at[step] = {};
        at = at[step];
      }
      at[/** @type {string} */ (steps.at(-1))] = parsed(this.value.value);
      const [head] = await this.#lines([], () => null, trial);
      this.trial.value = JSON.stringify(trial, null, 2);
      this.#keep();
      this.#report(changes(head));
    } catch (error) {
      this.#report(error);
    }
  }

  async #load() {
    const file = this.file.files?.[0];
    if (!file) return;
    try {
      const lines = (await file.text()).split("\n").filter((line) => line.trim());
      const rows = lines.map((line) => JSON.parse(line));
      this.questions.value = rows.map((row) => row.question).join("\n");
      this.rows = rows;
      this.#report(`${count(rows.length, "question")} of ${file.name}`);
    } catch (error) {
      this.#report(error);
    }
  }

  #asked() {
    if (this.rows) return this.rows;
    return this.questions.value.split("\n").map((line) => line.trim()).filter(Boolean).map((question) => ({ question }));
  }

  async #diff() {
    try {
      const [head] = await this.#lines([], () => null);
      const files = head.diff.map((/** @type {any} */ each) => h("section", null, h("h2", null, each.file), diffNode(each.diff), copyButton(each.diff)));
      this.results.replaceChildren(...(files.length ? files : [h("p", { class: "note" }, "The trial changes nothing.")]));
      this.#report("");
    } catch (error) {
      this.#report(error);
    }
  }

  async #run() {
    await this.changing;
    if (this.stop) return; // pressed twice meanwhile
    const asked = this.#asked();
    if (!asked.length) return this.#report(new Error("Write a question first."));
    this.stop = new AbortController();
    this.run.textContent = "Stop";
    this.#keep();
    const shown = asked.length > 1 ? new Table(asked) : new Columns(asked[0], this);
    this.results.replaceChildren(shown.node);
    this.#report("Asking …");
    try {
      await this.#lines(asked, (line) => {
        if (line.type === "waiting") this.#report(`${line.reason}: waiting for ${line.seconds} s`);
        else if (line.type === "error") throw new Problem(0, line.code, line.detail);
        else if (line.type === "trial") this.#report(changes(line));
        else shown.take(line);
      });
      if (this.notice.textContent === "Asking …") this.#report("");
    } catch (error) {
      this.#report(this.stop.signal.aborted ? "Stopped." : error);
      for (const each of this.results.querySelectorAll(".waits")) each.textContent = "No answer.";
    }
    this.stop = null;
    this.run.textContent = "Run both";
  }

  /**
   * Send the trial; call `take` with each line of the answer, and return all.
   * @param {any[]} questions
   * @param {(line: any) => void} take
   * @param {any} [trial]
   */
  async #lines(questions, take, trial = this.#written()) {
    // A table of answers has no room for those that are not complete.
    const body = { assistant: this.assistant, trial, questions, stream: questions.length === 1 };
    const answer = await this.server.send("POST", "/api/trials", { body, signal: this.stop?.signal, headers: { accept: "application/x-ndjson" } });
    /** @type {any[]} */
    const lines = [];
    await readLines(answer, (line) => {
      lines.push(line);
      take(line);
    });
    return lines;
  }

  /**
   * Show the test that keeps a question, then write or download it.
   * @param {any} row
   * @param {TrialAnswer} answer
   */
  async keepTest(row, answer) {
    const sources = answer.citations.filter((each) => each.verdict === "ok" && each.item).map((each) => each.item?.document_id || each.item?.model || each.item?.url || each.item?.title);
    const expected = { sources: [...new Set(sources)] };
    const given = row.sources || row.phrases || row.figures || row.refusal ? row : { ...row, ...(sources.length ? expected : { refusal: true }) };
    const input = h("textarea", { rows: "6", class: "code", spellcheck: "false", "aria-label": "The test", dir: "ltr" });
    input.value = JSON.stringify(given, null, 2);
    const notice = h("p", { class: "note", role: "status" });
    const write = h("button", { type: "button", class: "go", onclick: () => send(true) }, "Write it");
    const dialog = h(
      "dialog",
      { "aria-labelledby": "keep-test", class: "wide" },
      h("h2", { id: "keep-test" }, "Save as a test"),
      h("div", { class: "fields" }, h("p", { class: "note" }, "A row of a suite: what the answer must have. ", h("code", null, "groundhook eval"), " asks it again."), input, notice, h("div", { class: "row" }, write, h("button", { type: "button", onclick: () => download() }, "Download"), h("button", { type: "button", onclick: () => dialog.close() }, "Close"))),
    );
    const path = `/api/assistants/${encodeURIComponent(this.assistant)}/tests`;
    const send = async (/** @type {boolean} */ writes) => {
      try {
        const made = await this.server.json("POST", path, { row: JSON.parse(input.value), write: writes });
        write.hidden = !made.may_write;
        notice.textContent = made.written ? `Written to ${made.file}.` : made.may_write ? `It is added to ${made.file}.` : `Download it and add it to ${made.file}: this server does not write tests.`;
        return made;
      } catch (error) {
        notice.textContent = error instanceof Error ? error.message : String(error);
      }
    };
    const download = async () => {
      const made = await send(false);
      if (made) save(made.line, "workbench.suite.jsonl");
    };
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    await send(false);
  }
}

/** One question: both answers with what was ranked and what was sent. */
class Columns {
  /**
   * @param {any} row
   * @param {Workbench} bench
   */
  constructor(row, bench) {
    this.row = row;
    this.bench = bench;
    /** @type {TrialAnswer[]} */
    this.answers = [];
    /** What has come of the answers that are not complete. */
    this.texts = NAMES.map(() => "");
    this.columns = NAMES.map((name) => h("section", { "aria-label": name }, h("h2", null, name), h("p", { class: "note waits" }, "Asking …")));
    this.prompts = h("div", { class: "two" });
    this.node = h("div", null, h("div", { class: "two" }, ...this.columns), h("details", { class: "prompts" }, h("summary", null, "Prompts as they were sent"), this.prompts));
    this.moves = new Map();
  }

  /** @param {any} line */
  take(line) {
    if (line.type === "text") return this.#stream(line);
    if (line.type === "answer") this.answers[line.column] = line;
    if (line.type === "moves") this.moves = new Map(line.moves.map((/** @type {any} */ each) => [each.citation_id, each]));
    if (line.type !== "answer" && line.type !== "moves") return;
    this.answers.forEach((answer, column) => this.#draw(answer, column));
    this.prompts.replaceChildren(...this.answers.map((each) => h("div", null, ...(each.prompt ?? []).map((/** @type {any} */ message) => h("div", null, h("h3", null, message.role), h("pre", { tabindex: "0", dir: "auto" }, typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 1)))))));
  }

  /** @param {{column: number, delta: string}} piece */
  #stream({ column, delta }) {
    const section = this.columns[column];
    if (!this.texts[column]) section.replaceChildren(h("h2", null, NAMES[column]), h("p", { class: "note waits" }, "Answering …"), h("p", { class: "answer coming", dir: "auto" }));
    this.texts[column] += delta;
    const shown = section.querySelector(".coming");
    // Its citations become chips when it is complete.
    if (shown) shown.textContent = this.texts[column].replace(/ ?\[?#ref:\w{1,40}\]?/g, "");
  }

  /**
   * @param {TrialAnswer} answer
   * @param {number} column
   */
  #draw(answer, column) {
    const keep = h("button", { type: "button", onclick: () => void this.bench.keepTest(this.row, answer) }, "Save as a test …");
    const made = [
      h("h2", null, NAMES[column]),
      h("p", { class: "note" }, facts(answer, column ? this.answers[0] : null)),
      ...answer.errors.map((each) => h("p", { class: "bad", role: "alert" }, each.message, each.hint ? ` (${each.hint})` : "")),
      h("div", { class: "answer" }, ...answer.blocks.map((block) => blockNode(block, (markers) => marks(markers, answer)))),
      ...answer.lacks.map((each) => h("p", { class: "bad" }, each)),
      h("p", { class: "row" }, keep),
      ranking(answer, column ? this.moves : null),
    ];
    keepingFocus(this.columns[column], () => this.columns[column].replaceChildren(...made));
  }
}

/** A list of questions: what got better, worse and stayed. */
class Table {
  /** @param {any[]} asked */
  constructor(asked) {
    this.cells = asked.map((row) => ({ row, files: h("td"), trial: h("td"), change: h("td") }));
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.measures = h("div");
    this.node = h(
      "div",
      null,
      this.verdict,
      this.measures,
      h("table", { class: "rank" }, h("thead", null, h("tr", null, ...["Question", ...NAMES, ""].map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, ...this.cells.map((each) => h("tr", null, h("th", { scope: "row", dir: "auto" }, each.row.question), each.files, each.trial, each.change)))),
    );
  }

  /** @param {any} line */
  take(line) {
    if (line.type === "answer") {
      const cell = this.cells[line.question][line.column ? "trial" : "files"];
      const state = line.errors.length ? "failed" : Object.keys(line.checks).length ? (line.passed ? "passed" : "not passed") : line.certainty ?? "answered";
      const text = h("details", null, h("summary", { class: line.errors.length || !line.passed ? "bad" : null }, state), h("div", { class: "answer" }, ...line.blocks.map((/** @type {any} */ block) => blockNode(block, (markers) => marks(markers, line)))));
      cell.replaceChildren(text, ...line.lacks.map((/** @type {string} */ each) => h("small", { class: "bad" }, each)), ...line.errors.map((/** @type {any} */ each) => h("small", { class: "bad" }, each.message)));
    }
    if (line.type !== "summary") return;
    const seen = { better: 0, worse: 0, same: 0 };
    for (const [row, change] of Object.entries(line.changes)) {
      const name = /** @type {"better" | "worse" | "same"} */ (change);
      seen[name] += 1;
      this.cells[Number(row)].change.replaceChildren(h("b", { class: name }, name === "same" ? "the same" : name));
    }
    this.verdict.textContent = Object.keys(line.changes).length
      ? `${seen.better} better, ${seen.worse} worse, ${seen.same} the same (sign test: p = ${line.p.toFixed(3)})`
      : "No question expects anything: write what each answer must have into a suite.";
    this.measures.replaceChildren(
      h("table", { class: "rank" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, "Measure"), ...[...NAMES, "95 % of the difference"].map((name) => h("th", { scope: "col", class: "n" }, name)))), h("tbody", null, ...line.measures.map((/** @type {any} */ each) => h("tr", null, h("th", { scope: "row" }, each.label), ...each.values.map((/** @type {number | null} */ value) => h("td", { class: "n" }, value === null ? "" : figure(value, each.unit))), h("td", { class: "n" }, each.interval ? each.interval.map((/** @type {number} */ value) => figure(value, each.unit)).join(" to ") : ""))))),
    );
  }
}

/** @param {any} head */
function changes(head) {
  const shown = head.changes.map((/** @type {any} */ each) => `${each.key} ${each.before === null ? "" : `${JSON.stringify(each.before)} `}→ ${JSON.stringify(each.after)}`);
  if (head.prompts) shown.push("prompts");
  return shown.length ? `Changed: ${shown.join(", ")}` : "The trial changes nothing.";
}

/**
 * @param {TrialAnswer} answer
 * @param {TrialAnswer | null} before
 */
function facts(answer, before) {
  const parts = [answer.certainty ? `certainty: ${answer.certainty}` : "", duration(answer.timings.total ?? 0), answer.usage.total_tokens ? count(answer.usage.total_tokens, "token") : ""];
  if (answer.cost !== null) {
    const more = before?.cost === null || before?.cost === undefined ? null : answer.cost - before.cost;
    parts.push(more === null ? `cost ${figure(answer.cost, "cost")}` : `cost ${figure(answer.cost, "cost")} (${more > 0 ? "+" : ""}${figure(more, "cost")})`);
  }
  return parts.filter(Boolean).join(" · ");
}

/**
 * @param {TrialAnswer} answer
 * @param {Map<string, any> | null} moves
 */
function ranking(answer, moves) {
  const rows = answer.ranking.map((entry, n) => {
    const moved = moves?.get(entry.citation_id);
    return h(
      "tr",
      null,
      h("td", { class: "n" }, String(n + 1), moved ? move(moved.move) : null),
      h("td", null, h("span", { dir: "auto" }, entry.title || entry.citation_id), formula(entry), moved?.why ? h("small", null, moved.why) : null),
      h("td", { class: "n" }, number(entry.final)),
    );
  });
  const gone = [...(moves?.values() ?? [])].filter((each) => each.move === "gone").map((each) => h("tr", { class: "dropped" }, h("td", { class: "n" }, move("gone")), h("td", null, h("span", { dir: "auto" }, each.title || each.citation_id), h("small", null, each.why)), h("td")));
  if (!rows.length && !gone.length) return h("p", { class: "note" }, "Nothing was ranked.");
  return h("table", { class: "rank" }, h("thead", null, h("tr", null, h("th", { class: "n", scope: "col" }, "#"), h("th", { scope: "col" }, "Source"), h("th", { class: "n", scope: "col" }, "Final"))), h("tbody", null, ...rows, ...gone));
}

/** @param {number | string} by */
function move(by) {
  if (by === 0) return null;
  if (typeof by === "string") return h("b", { class: by === "new" ? "better" : "worse" }, ` ${by}`);
  const words = `${Math.abs(by)} ${by > 0 ? "up" : "down"}`;
  return h("b", { class: by > 0 ? "better" : "worse", "aria-label": words }, ` ${by > 0 ? "▲" : "▼"}${Math.abs(by)}`);
}

/**
 * @param {string[]} markers
 * @param {TrialAnswer} answer
 */
function marks(markers, answer) {
  const made = markers.map((marker) => {
    const citation = answer.citations.find((each) => each.marker === marker);
    const title = citation?.item?.title || marker;
    return h("span", { class: `chip ${citation?.item?.type ?? ""} ${citation?.verdict ?? "unknown"}`, title: marker }, h("bdi", null, title));
  });
  return h("span", null, ...made);
}

/** @param {string} text */
function diffNode(text) {
  const lines = text.split("\n").map((line) => h("span", { class: line.startsWith("+") ? "better" : line.startsWith("-") ? "worse" : null }, `${line}\n`));
  return h("pre", { class: "diff", tabindex: "0", dir: "ltr" }, ...lines);
}

/** @param {string} text */
function copyButton(text) {
  const button = h("button", { type: "button", onclick: () => copy(text, button) }, "Copy");
  return button;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * @param {number} value
 * @param {string} unit
 */
function figure(value, unit) {
  if (unit === "share") return `${Math.round(value * 100)} %`;
  if (unit === "ms") return duration(value);
  return unit === "cost" ? value.toFixed(6) : Math.round(value).toLocaleString();
}

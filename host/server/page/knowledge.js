// @ts-check
/** Collections for those who keep them: documents, passages as they were cut, a search with reasons. */

import { readLines } from "./api.js";
import { count, focused, h } from "./dom.js";
import { beside, foundPassage, scores } from "./passages.js";
import { Syncs } from "./syncs.js";

/** @typedef {import("./api.js").Server} Server */

/**
 * Say why a document was found or not, with the scores of its best passage.
 * @param {string} document
 * @param {any} answer
 */
function reason(document, answer) {
  const best = answer.expected ? ` (its best passage: ${scores(answer.expected)})` : "";
  if (answer.why) return `${document} was not found: ${answer.why}${best}.`;
  const place = answer.passages.findIndex((/** @type {any} */ each) => each.document === document) + 1;
  return `${document} was found at place ${place}${best}.`;
}

const named = (/** @type {any} */ each) => each.title || each.document;
const size = (/** @type {number} */ bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const path = (/** @type {string} */ name) => name.split("/").map(encodeURIComponent).join("/");

export class Knowledge {
  /**
   * @param {HTMLElement} place
   * @param {Server} server
   * @param {string} collection the one that is shown first; empty: the assistant's first
   * @param {string} assistant
   */
  constructor(place, server, collection, assistant) {
    this.server = server;
    this.assistant = assistant;
    this.id = collection;
    this.document = "";
    /** What had the focus before a document was opened. @type {HTMLElement | null} */
    this.opener = null;
    /** What the last search said of passages. @type {import("./types.d.ts").Passage[]} */
    this.standings = [];
    this.pick = h("select", { id: "collection", onchange: () => this.#choose(this.pick.value) });
    this.about = h("p", { class: "note" });
    this.notice = h("p", { class: "notice", role: "status" });
    this.bar = h("progress", { hidden: true, max: "1", value: "0", "aria-label": "Progress" });
    this.file = h("input", { type: "file", multiple: true, hidden: true, onchange: () => void this.#add([...(this.file.files ?? [])].map((file) => [file.name, file])) });
    this.list = h("tbody");
    this.shown = h("div", { class: "passages" });
    this.read = h("div", { hidden: true });
    this.query = h("input", { type: "search", "aria-label": "Search in this collection", placeholder: "Search in this collection" });
    this.filter = h("input", { type: "search", "aria-label": "Find a document", placeholder: "Find a document", oninput: () => this.#list() });
    /** @type {any[]} */
    this.documents = [];
    this.total = 0;
    const search = h("form", { class: "row" }, this.query, h("button", { type: "submit" }, "Search"));
    search.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#search();
    });
    this.drop = h("p", { class: "drop" }, h("button", { type: "button", class: "go", onclick: () => this.file.click() }, "Add files …"), this.file, h("span", null, " or drop files and folders here"));
    const left = h("div", null, this.drop, this.bar, this.filter, h("table", null, h("thead", null, h("tr", null, h("th", { scope: "col" }, "Document"), h("th", { scope: "col", class: "n" }, "Passages"), h("th", { scope: "col" }, h("span", { class: "unseen" }, "Remove")))), this.list));
    this.syncs = new Syncs(server, { report: (said) => this.#report(said), synced: () => this.#collections() });
    left.append(this.syncs.node);
    this.both = h("div", { class: "two" }, left, this.shown);
    const view = h("div", { class: "view knowledge", lang: "en", dir: "ltr" }, h("div", { class: "row" }, h("label", { for: "collection" }, "Collection"), this.pick, this.about), search, this.notice, this.both, this.read);
    for (const type of ["dragenter", "dragover"]) view.addEventListener(type, (event) => this.#over(/** @type {DragEvent} */ (event), true));
    view.addEventListener("dragleave", (event) => this.#over(event, false));
    view.addEventListener("drop", (event) => void this.#dropped(event));
    place.replaceChildren(view);
    this.pick.focus();
    this.closed = false;
    this.ready = this.#collections();
  }

  close() {
    this.closed = true;
    this.syncs.close();
  }

  /** @param {unknown} error */
  #report(error) {
    this.notice.classList.toggle("bad", error instanceof Error);
    this.notice.textContent = error instanceof Error ? error.message : String(error);
  }

  get #base() {
    return `/api/kb/${encodeURIComponent(this.id)}`;
  }

  async #collections() {
    try {
      const { collections } = await this.server.json("GET", "/api/kb");
      if (!collections.length) return this.#report("There is no collection that you may keep.");
      this.pick.replaceChildren(...collections.map((/** @type {any} */ each) => h("option", { value: each.id }, `${each.name || each.id} · ${count(each.documents, "document")}`)));
      this.collections = new Map(collections.map((/** @type {any} */ each) => [each.id, each]));
      const own = collections.find((/** @type {any} */ each) => each.assistants.includes(this.assistant)) ?? collections[0];
      const id = this.collections.has(this.id) ? this.id : own.id;
      if (id !== this.id || !this.documents.length) return await this.#choose(id);
      this.pick.value = id;
      this.#describe(id);
      await this.#load();
    } catch (error) {
      this.#report(error);
    }
  }

  /** @param {string} id */
  async #choose(id) {
    this.id = this.pick.value = id;
    this.#describe(id);
    this.document = "";
    this.standings = [];
    this.#show(false);
    this.shown.replaceChildren(h("p", { class: "note" }, "Choose a document to see its passages, or search."));
    await this.#load();
  }

  /** @param {string} id */
  #describe(id) {
    const about = this.collections?.get(id);
    this.about.textContent = about ? [id, count(about.passages, "passage"), size(about.bytes), about.language, about.tenant && `tenant ${about.tenant}`].filter(Boolean).join(" · ") : id;
  }

  async #load() {
    const { id } = this;
    try {
      const { documents, total } = await this.server.json("GET", this.#base);
      if (id !== this.id) return;
      this.documents = documents;
      this.total = total;
      this.#list();
    } catch (error) {
      this.#report(error);
    }
  }

  #list() {
    const words = this.filter.value.toLowerCase();
    const shown = this.documents.filter((each) => `${each.document} ${each.title}`.toLowerCase().includes(words));
    const rows = shown.map((each) =>
      h(
        "tr",
        null,
        h("td", null, h("button", { type: "button", class: "name", onclick: () => void this.#open(each.document) }, h("bdi", null, named(each))), h("small", { dir: "auto" }, [each.title && each.document, size(each.bytes), each.state === "ready" ? "" : each.state].filter(Boolean).join(" · "))),
        h("td", { class: "n" }, String(each.passages)),
        h("td", null, h("button", { type: "button", "aria-label": `Remove ${named(each)}`, onclick: () => void this.#remove(each.document) }, "Remove")),
      ),
    );
    if (this.total > this.documents.length) rows.push(h("tr", null, h("td", { colspan: "3", class: "note" }, `and ${(this.total - this.documents.length).toLocaleString()} more`)));
    if (!rows.length) rows.push(h("tr", null, h("td", { colspan: "3", class: "note" }, this.documents.length ? "No document has this name." : "Nothing is in it yet.")));
    this.list.replaceChildren(...rows);
  }

  /**
   * Show a document as it was read and as it was cut; what the last search found is marked.
   * @param {string} document
   * @param {import("./types.d.ts").Passage} [hit] the passage that is shown first
   */
  async #open(document, hit) {
    this.document = document;
    this.opener = focused();
    try {
      const read = await this.server.json("GET", `/api/sources/kb/${encodeURIComponent(this.id)}/${path(document)}`);
      if (this.document !== document) return;
      // A passage that answers in part begins behind the beginning of what was cut.
      const standing = (/** @type {number | null} */ start, /** @type {number | null} */ end) =>
        this.standings.find((each) => each.document === document && start !== null && end !== null && each.start !== null && start <= each.start && each.start < end);
      const why = this.query.value.trim() && h("button", { type: "button", onclick: () => void this.#search(document) }, "Why is it (not) found?");
      const heading = h("h2", { dir: "auto", tabindex: "-1" }, read.title || document);
      this.read.replaceChildren(h("div", { class: "row" }, h("button", { type: "button", onclick: () => this.#back() }, hit ? "Back to what was found" : "Back to the documents"), heading, why || ""), beside(read.passages, standing));
      this.#show(true);
      const at = hit ? read.passages.findIndex((/** @type {any} */ each) => standing(each.start, each.end) === hit || each.content === hit.content) : -1;
      const button = /** @type {HTMLElement | undefined} */ (this.read.querySelectorAll(".cuts .name")[at]);
      button?.click();
      (button ?? heading).focus();
    } catch (error) {
      this.#report(error);
    }
  }

  /** @param {boolean} document whether the document is shown, or the list beside what was found */
  #show(document) {
    this.read.hidden = !document;
    this.both.hidden = document;
  }

  /** Show the list again, where it was left. */
  #back() {
    this.#show(false);
    (this.opener?.isConnected ? this.opener : this.filter).focus();
  }

  /**
   * Search, and say why a document that is expected was not found.
   * @param {string} [expect]
   */
  async #search(expect = "") {
    const query = this.query.value.trim();
    await this.ready; // which says what a search of no collection cannot
    if (!query || !this.id) return;
    try {
      const answer = await this.server.json("POST", `${this.#base}/search`, { query, expect });
      this.standings = [...answer.passages, ...answer.left_out, ...(answer.expected ? [answer.expected] : [])];
      const open = (/** @type {import("./types.d.ts").Passage} */ each) => void this.#open(each.document, each);
      const titles = new Map(this.documents.map((each) => [each.document, named(each)]));
      const shown = (/** @type {import("./types.d.ts").Passage[]} */ passages, /** @type {boolean} */ numbered) =>
        h("ol", { class: "cuts" }, ...passages.map((each, n) => foundPassage(each, numbered ? `${n + 1}.` : "", answer.threshold, titles, open)));
      const certain = answer.certainty ? `; certainty: ${answer.certainty}` : "";
      const said = `${count(answer.passages.length, "passage")} at or above ${answer.threshold}${certain}`;
      const heading = h("h2", { tabindex: "-1" }, "Found");
      const made = [
        heading,
        h("p", { class: "note" }, said),
        !answer.by_words && h("p", { class: "note" }, "Words did not count: no passage has enough of the question's."),
        expect && h("p", { class: "reason", dir: "auto" }, reason(expect, answer)),
        answer.passages.length ? shown(answer.passages, true) : h("p", null, "No passage was found. Choose a document and ask why."),
        answer.left_out.length > 0 && h("h2", null, "Not found: these come next"),
        answer.left_out.length > 0 && shown(answer.left_out, false),
      ];
      this.shown.replaceChildren(...made.flatMap((each) => (each ? [each] : [])));
      this.#show(false);
      this.#report(expect ? reason(expect, answer) : said);
      if (expect) heading.focus(); // the button that asked is gone
    } catch (error) {
      this.#report(error);
    }
  }

  /** @param {string} document */
  async #remove(document) {
    if (!confirm(`Remove ${document} from ${this.id}?`)) return;
    try {
      await this.server.send("DELETE", `${this.#base}/documents/${path(document)}`);
      this.#report(`${document} was removed.`);
      this.shown.replaceChildren();
      await this.#collections();
      this.filter.focus(); // the button that removed is gone
    } catch (error) {
      this.#report(error);
    }
  }

  /**
   * @param {DragEvent} event
   * @param {boolean} over
   */
  #over(event, over) {
    event.preventDefault();
    this.drop.classList.toggle("over", over);
  }

  /** @param {DragEvent} event */
  async #dropped(event) {
    this.#over(event, false);
    const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter((each) => each !== null);
    /** @type {[string, File][]} */
    const files = [];
    try {
      for (const entry of entries) await collect(entry, "", files);
      await this.#add(files);
    } catch (error) {
      this.#report(error);
    }
  }

  /**
   * Send files one after the other, so that a broken one holds up no other.
   * @param {[string, File][]} files
   */
  async #add(files) {
    this.file.value = "";
    const problems = [];
    let added = 0;
    this.bar.hidden = false;
    for (const [n, [name, file]] of files.entries()) {
      if (this.closed) return;
      this.#report(`${name}: sending (${n + 1} of ${files.length})`);
      this.bar.value = n / files.length;
      try {
        await this.#send(name, file, (line) => {
          if (line.type === "progress" && line.total) {
            this.bar.value = (n + line.done / line.total) / files.length;
            this.#report(`${name}: ${count(line.passages, "passage")} embedded`);
          }
          if (line.type === "error") throw new Error(line.detail);
          if (line.type === "file" && line.outcome === "failed") throw new Error(line.error);
          if (line.type === "done" && line.unread.length) throw new Error("there is no reader for its kind");
        });
        added += 1;
      } catch (error) {
        problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    this.bar.hidden = true;
    const done = files.length ? `${count(added, "file")} added.` : "Nothing was dropped.";
    this.#report(problems.length ? new Error([done, ...problems].join("\n")) : done);
    await this.#collections();
  }

  /**
   * @param {string} name
   * @param {File} file
   * @param {(line: any) => void} take
   */
  async #send(name, file, take) {
    const form = new FormData();
    form.append("file", file, name);
    const answer = await this.server.send("POST", `${this.#base}/documents`, { body: form, headers: { accept: "application/x-ndjson" } });
    await readLines(answer, take);
  }
}

/**
 * Collect the files of what was dropped, folders with all in them. Hidden files are left out.
 * @param {FileSystemEntry} entry
 * @param {string} folder
 * @param {[string, File][]} files
 */
async function collect(entry, folder, files) {
  if (entry.name.startsWith(".")) return;
  const name = `${folder}${entry.name}`;
  if (entry.isFile) {
    const file = /** @type {File} */ (await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject)));
    files.push([name, file]);
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    const some = /** @type {FileSystemEntry[]} */ (await new Promise((resolve, reject) => reader.readEntries(resolve, reject)));
    if (!some.length) return;
    for (const each of some) await collect(each, `${name}/`, files);
  }
}

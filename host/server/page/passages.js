// @ts-check
/** Passages of a collection for those who keep it: with their scores, and beside the document that
 * they were cut from. */

import { h } from "./dom.js";

/** @typedef {import("./types.d.ts").Passage} Passage */

/**
 * Return a passage that a search found or left out.
 * @param {Passage} passage
 * @param {string} place what stands before the name of its document
 * @param {number} threshold
 * @param {Map<string, string>} titles of documents
 * @param {(passage: Passage) => void} open
 */
export function foundPassage(passage, place, threshold, titles, open) {
  const title = titles.get(passage.document) ?? passage.document;
  return h(
    "li",
    { class: "cut" },
    h(
      "header",
      null,
      h("button", { type: "button", class: "name", onclick: () => open(passage) }, place && `${place} `, h("bdi", null, title)),
      passage.score === undefined ? null : h("b", { class: "n" }, `score ${passage.score.toFixed(2)}`),
    ),
    h("p", { class: "scores" }, [title !== passage.document && passage.document, scores(passage), passage.cut && cut(passage, threshold)].filter(Boolean).join(" · ")),
    h("p", { dir: "auto" }, passage.content),
  );
}

/**
 * Return the scores of a passage by meaning and by words, each with its place.
 * @param {Passage} passage
 */
export function scores(passage) {
  if (passage.meaning === null) return "reached through the graph";
  const words = passage.words_place ? `words ${passage.words?.toFixed(1)} (${nth(passage.words_place)})` : "words: not among the best";
  return `meaning ${passage.meaning.toFixed(2)} (${nth(passage.meaning_place ?? 0)}) · ${words}`;
}

/**
 * @param {Passage} passage
 * @param {number} threshold
 */
function cut(passage, threshold) {
  if (passage.cut === "threshold") return `below the threshold ${threshold.toFixed(2)}`;
  return `place ${passage.place}, beyond what is shown`;
}

/** @param {number} n */
function nth(n) {
  /** @type {Record<string, string>} */
  const endings = { one: "st", two: "nd", few: "rd" };
  return `${n}${endings[new Intl.PluralRules("en", { type: "ordinal" }).select(n)] ?? "th"}`;
}

/**
 * Return the text of a document as it was read, and beside it the passages as they were cut. A
 * passage that is pointed at or chosen is marked in the text.
 * @param {{content: string, start: number | null, end: number | null, page?: number}[]} passages
 * @param {(start: number | null, end: number | null) => Passage | undefined} standing what the last search says of a passage
 */
export function beside(passages, standing) {
  const text = h("div", { class: "read", dir: "auto", tabindex: "0", role: "region", "aria-label": "As it was read" });
  let end = 0;
  const cuts = passages.map((each, n) => {
    const letters = [...each.content];
    const size = each.start === null || each.end === null ? letters.length : Math.min(letters.length, each.end - each.start);
    const repeated = letters.length - size + Math.min(size, Math.max(0, n ? end - (each.start ?? end) : 0));
    if (n && (each.start ?? end + 1) > end) text.append("\n\n");
    end = Math.max(end, each.end ?? end);
    const own = h("span", { class: "part" }, letters.slice(repeated).join(""));
    text.append(own);
    const mark = (/** @type {boolean} */ on) => own.classList.toggle("marked", on);
    const show = () => {
      for (const other of text.querySelectorAll(".chosen")) other.classList.remove("chosen");
      own.classList.add("chosen");
      own.scrollIntoView({ block: "nearest" });
    };
    const found = standing(each.start, each.end);
    const facts = [each.page ? `page ${each.page}` : "", each.start === null ? "" : `characters ${each.start}–${each.end}`].filter(Boolean).join(" · ");
    const said = found && h("p", { class: found.cut ? "scores" : "scores better" }, `${found.cut ? "not found" : `found ${found.place}.`} · ${scores(found)}`);
    const made = h(
      "li",
      { class: "cut" },
      h("header", null, h("button", { type: "button", class: "name", onclick: show, "aria-label": `Show passage ${n + 1} in the document` }, `passage ${n + 1}`), h("span", null, facts)),
      said,
      h("p", { dir: "auto" }, repeated > 0 && h("span", { class: "again", title: "Repeated from before" }, letters.slice(0, repeated).join("")), letters.slice(repeated).join("")),
    );
    for (const type of ["pointerenter", "focusin"]) made.addEventListener(type, () => mark(true));
    for (const type of ["pointerleave", "focusout"]) made.addEventListener(type, () => mark(false));
    return made;
  });
  return h(
    "div",
    { class: "two beside" },
    h("section", null, h("h3", { "aria-hidden": "true" }, "As it was read"), text),
    h("section", { "aria-label": "As it was cut" }, h("h3", { "aria-hidden": "true" }, "As it was cut"), h("ol", { class: "cuts" }, ...cuts)),
  );
}

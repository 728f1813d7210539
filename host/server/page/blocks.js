// @ts-check
/** Makes nodes of the blocks of an answer. What a block may be is listed here; the rest is text. */

import { h, link } from "./dom.js";
import { table } from "./table.js";
import { t } from "./words.js";

/** @typedef {import("./types.d.ts").Block} Block */
/** @typedef {(markers: string[]) => Node} Chips makes the chips of markers that follow one another */

/**
 * Return the node of a block.
 * @param {Block} block
 * @param {Chips} chips
 * @returns {HTMLElement}
 */
export function blockNode(block, chips) {
  const inside = () => nodes(block.children, chips);
  switch (block.type) {
    case "p":
      return h("p", { dir: "auto" }, ...inside());
    case "h": {
      const level = Math.min(6, Math.max(1, block.level ?? 1) + 2);
      return h(/** @type {"h3"} */ (`h${level}`), { dir: "auto" }, ...inside());
    }
    case "ul":
      return h("ul", { dir: "auto" }, ...inside());
    case "ol":
      return h("ol", { dir: "auto", start: block.start === 1 ? null : block.start }, ...inside());
    case "li":
      return h("li", { dir: "auto" }, ...inside());
    case "quote":
      return h("blockquote", { dir: "auto" }, ...inside());
    case "code":
      return code(block.text ?? "", block.lang ?? "");
    case "table":
      return table(block, (cell) => nodes(cell.children, chips));
    case "hr":
      return h("hr");
    default:
      return h("p", { dir: "auto" }, ...inside());
  }
}

/**
 * Return the nodes of children, with the chips of markers that follow one another together.
 * @param {import("./types.d.ts").Node_[] | undefined} children
 * @param {Chips} chips
 * @returns {Node[]}
 */
function nodes(children, chips) {
  /** @type {Node[]} */
  const made = [];
  /** @type {string[]} */
  let markers = [];
  const flush = () => {
    if (markers.length) made.push(chips(markers));
    markers = [];
  };
  for (const child of children ?? []) {
    if (typeof child !== "string" && child.type === "ref") {
      markers.push(child.marker ?? "");
      continue;
    }
    if (markers.length && typeof child === "string" && !child.trim()) continue;
    const followed = markers.length > 0;
    flush();
    if (typeof child !== "string") made.push(inline(child, chips));
    else made.push(document.createTextNode(followed && /^[\w(]/.test(child) ? ` ${child}` : child));
  }
  flush();
  return made;
}

/**
 * @param {Block} block
 * @param {Chips} chips
 * @returns {Node}
 */
function inline(block, chips) {
  const inside = () => nodes(block.children, chips);
  switch (block.type) {
    case "em":
      return h("em", null, ...inside());
    case "strong":
      return h("strong", null, ...inside());
    case "del":
      return h("del", null, ...inside());
    case "codespan":
      return h("code", { dir: "ltr" }, block.text ?? "");
    case "br":
      return h("br");
    case "link": {
      const made = link(block.href ?? "", "");
      made.append(...inside());
      return made;
    }
    default:
      return blockNode(block, chips);
  }
}

/**
 * @param {string} text
 * @param {string} lang
 */
function code(text, lang) {
  const button = h("button", { type: "button", onclick: () => copy(text, button) }, t("Copy"));
  return h(
    "figure",
    { class: "code", dir: "ltr" },
    h("figcaption", null, h("span", null, lang || "code"), button),
    h("pre", { tabindex: "0" }, h("code", null, text.replace(/\n$/, ""))),
  );
}

/**
 * Copy a text, and say so on the button for a moment.
 * @param {string} text
 * @param {HTMLElement} button
 */
export async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = t("Copied");
  } catch {
    button.textContent = t("Not copied: the browser refuses");
  }
  setTimeout(() => (button.textContent = label), 1500);
}

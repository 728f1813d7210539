// @ts-check
/** Makes nodes of the page. No text becomes markup: attributes and texts are set, never parsed. */

import { DIRECTION } from "./words.js";

/**
 * Return a new element. Keys of `props` that begin with `on` are listeners; `true` is an attribute
 * without a value; null, undefined and false leave an attribute out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, unknown> | null} [props]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, props, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child || child === "") made.append(child);
  return made;
}

/** Return the element with the focus, also one within shadow roots. */
export function focused() {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return /** @type {HTMLElement | null} */ (at);
}

const CONTROLS = "button:not(:disabled), a[href], input, select, textarea, summary, [tabindex]";
const nameOf = (/** @type {Element} */ control) => control.tagName + (control.ariaLabel ?? control.textContent);

/**
 * Change what is in a node. A focus within stays where it is: on the control of the same name, else
 * on the one in the same place; and what is typed there stays typed.
 * @param {HTMLElement} place
 * @param {() => void} change
 */
export function keepingFocus(place, change) {
  const at = focused();
  const before = at && at !== place && place.contains(at) ? /** @type {HTMLElement[]} */ ([...place.querySelectorAll(CONTROLS)]) : [];
  change();
  if (!at || !before.length || (at.isConnected && focused() === at)) return;
  const now = /** @type {HTMLElement[]} */ ([...place.querySelectorAll(CONTROLS)]);
  const n = before.indexOf(at);
  const same = (/** @type {HTMLElement | undefined} */ each) => each && nameOf(each) === nameOf(at);
  const next = at.isConnected ? at : same(now[n]) ? now[n] : (now.find(same) ?? now[Math.min(n, now.length - 1)]);
  if (next instanceof HTMLInputElement && at instanceof HTMLInputElement && same(next)) next.value = at.value;
  next?.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

/** Drawings of 16 by 16, as paths that are stroked. */
const ICONS = {
  stop: "M4.5 4.5h7v7h-7z",
  send: "M8 13V3M3.8 7.2 8 3l4.2 4.2",
  close: "M4 4l8 8M12 4l-8 8",
  back: "M10 3.5 5.5 8l4.5 4.5",
  on: "M6 3.5 10.5 8 6 12.5",
  clock: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2M8 5v3.3l2.2 1.4",
  talk: "M2.5 3.5h11v7.5H7.2L4 13.6V11H2.5z",
  plus: "M8 3.2v9.6M3.2 8h9.6",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  down: "M4 6.2 8 10l4-3.8",
  clip: "M12.6 7.4 7.8 12.2a2.9 2.9 0 0 1-4.1-4.1l5-5a1.9 1.9 0 0 1 2.7 2.7l-5 5a.9.9 0 0 1-1.3-1.3l4.6-4.6",
};

/**
 * Return a drawing, which screen readers skip: the button around it has a name.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * Return the address if it may be a link: http(s) alone. Everything else would run or open
 * something that is no page.
 * @param {string} address
 */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : "";
  } catch {
    return "";
  }
}

/**
 * Return a link that opens another page, to which neither this page nor its address is known.
 * @param {string} address
 * @param {string} text
 */
export function link(address, text) {
  const href = safeAddress(address);
  if (!href) return h("span", null, text);
  return h("a", { href, target: "_blank", rel: "noopener noreferrer nofollow", dir: "auto" }, text);
}

/**
 * Return the sheets of style of the files with these names beside this module.
 * @param {...string} names
 */
export function sheets(...names) {
  return Promise.all(
    names.map(async (name) => {
      const answer = await fetch(new URL(name, import.meta.url));
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(await answer.text());
      return sheet;
    }),
  );
}

/**
 * Return a count with its noun: `1 result`, `2 results`.
 * @param {number} n
 * @param {string} noun
 * @param {string} [plural]
 */
export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString()} ${n === 1 ? noun : plural}`;
}

/**
 * Return a time in milliseconds for people.
 * @param {number} ms
 */
export function duration(ms) {
  const said = ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
  // Among words that are written from right to left, the unit stays behind the number.
  return DIRECTION === "rtl" ? `\u2066${said}\u2069` : said;
}

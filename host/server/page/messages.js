// @ts-check
/** Messages of hooks, as their types say. Unknown types are shown as data. */

import { h } from "./dom.js";
import { table } from "./table.js";
import { t } from "./words.js";

/**
 * Return the node of a message.
 * @param {any} message
 * @param {(text: string) => void} ask
 * @returns {HTMLElement}
 */
export function hookMessage(message, ask) {
  const props = message?.props ?? {};
  switch (message?.type) {
    case "loading":
      return h("p", { class: "note loading", role: "status", dir: "auto" }, String(props.message ?? props.content ?? "…"));
    case "text":
      return h("p", { class: "plain", dir: "auto" }, String(props.content ?? ""));
    case "error":
      return h("p", { class: "trouble", role: "alert", dir: "auto" }, String(props.message ?? props.content ?? ""));
    case "table":
      return rows(props);
    case "image":
      return picture(props);
    case "action":
    case "actions":
      return h(
        "div",
        { class: "readings" },
        ...list(props.actions ?? [props]).map((each) =>
          h("button", { type: "button", dir: "auto", onclick: () => ask(String(each?.text ?? each?.label ?? each)) }, String(each?.label ?? each?.text ?? each)),
        ),
      );
    default:
      return h(
        "details",
        { class: "aside" },
        h("summary", null, String(props.title ?? message?.type ?? t("Message"))),
        h("pre", { tabindex: "0" }, JSON.stringify(props, null, 1)),
      );
  }
}

/** @param {any} value */
function list(value) {
  return Array.isArray(value) ? value.slice(0, 50) : [];
}

/** @param {any} props */
function rows(props) {
  const given = list(props.rows);
  const columns = list(props.columns).length
    ? list(props.columns).map((each) => String(each?.name ?? each))
    : [...new Set(given.flatMap((row) => (Array.isArray(row) ? row.map((_, n) => String(n)) : Object.keys(row ?? {}))))];
  const cell = (/** @type {unknown} */ value, head = false) => ({ type: "cell", head, children: [String(value ?? "")] });
  const block = {
    type: "table",
    children: [
      { type: "tr", children: columns.map((each) => cell(each, true)) },
      ...given.map((row) => ({ type: "tr", children: columns.map((each, n) => cell(Array.isArray(row) ? row[n] : row?.[each])) })),
    ],
  };
  return table(block, (each) => (each.children ?? []).map((text) => document.createTextNode(String(text))));
}

/** @param {any} props */
function picture(props) {
  const given = String(props.url ?? props.src ?? "");
  let url;
  try {
    url = new URL(given, location.href);
  } catch {
    url = null;
  }
  // Of this origin alone: a picture of another one tells it who reads what.
  if (!url || url.origin !== location.origin) return h("p", { class: "note" }, t("A picture of another site is not shown."));
  return h("img", { src: url.href, alt: String(props.alt ?? ""), loading: "lazy" });
}

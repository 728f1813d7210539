// @ts-check
/** A source in its whole: the document with the cited passage marked, or the record. */

import { blockNode } from "./blocks.js";
import { h, icon, link } from "./dom.js";
import { kind, place } from "./chips.js";
import { t } from "./words.js";

/** @typedef {import("./types.d.ts").Item} Item */
/** @typedef {import("./api.js").Server} Server */

const AROUND = 40; // passages before and after the cited one that are shown at first

/**
 * Show the source of an item in a dialog of the shadow root.
 * @param {ShadowRoot | HTMLElement} root
 * @param {Server} server
 * @param {Item} item
 */
export async function openSource(root, server, item) {
  const body = h("div", { class: "pages", tabindex: "0" }, h("p", { class: "note" }, t("Loading …")));
  const close = h("button", { type: "button", "aria-label": t("Close") }, icon("close"));
  const dialog = h(
    "dialog",
    { class: "sheet", "aria-label": item.title || t("Source") },
    h(
      "header",
      null,
      h("div", null, h("h2", { dir: "auto" }, item.title || place(item)), h("p", { class: "note" }, `${kind(item.type)} · ${[place(item), item.document_id].filter(Boolean).join(" / ")}`)),
      !server.token() && !server.base && link(withTarget(item.url), t("Open as a page")),
      close,
    ),
    body,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  root.append(dialog);
  dialog.showModal();
  try {
    const found = await server.json("GET", viewOf(item.url));
    body.replaceChildren(...(found.passages ? passages(found.passages, body) : [record(found)]));
    showCited(body);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    body.replaceChildren(h("p", { class: "trouble", role: "alert" }, t("The source cannot be shown: {why}", { why })));
  }
}

/**
 * Show the cited passage, and lead those who listen to it.
 * @param {HTMLElement} body
 */
function showCited(body) {
  const cited = /** @type {HTMLElement | null} */ (body.querySelector(".cited"));
  cited?.scrollIntoView({ block: "center" });
  (cited ?? body).focus({ preventScroll: true });
}

/** @param {string} address */
function viewOf(address) {
  const url = new URL(address, location.href);
  url.searchParams.set("view", "blocks");
  return url.pathname + url.search;
}

/** @param {string} address */
function withTarget(address) {
  return address.includes("#") ? address : `${address}#cited`;
}

/**
 * @param {any[]} all
 * @param {HTMLElement} body
 */
function passages(all, body) {
  const cited = Math.max(0, all.findIndex((each) => each.marked));
  const from = Math.max(0, cited - AROUND);
  const to = Math.min(all.length, cited + AROUND);
  let page = 0;
  const shown = (/** @type {any[]} */ part) =>
    part.map((each) => {
      const begins = each.page && each.page !== page;
      page = each.page || page;
      const blocks = (each.blocks ?? []).map((/** @type {any} */ block) => blockNode(block, () => h("span")));
      return h(
        "section",
        each.marked ? { class: "cited", "aria-label": t("Cited passage"), tabindex: "-1" } : null,
        begins && h("p", { class: "note" }, t("Page {n}", { n: each.page })),
        ...(each.marked ? [h("mark", null, ...blocks)] : blocks),
      );
    });
  const rest = all.length - (to - from);
  const more = rest && h("button", { type: "button", class: "quiet" }, t("Show the whole document"));
  if (more) {
    more.addEventListener("click", () => {
      body.replaceChildren(...shown(all));
      showCited(body);
    });
  }
  return [...shown(all.slice(from, to)), ...(more ? [more] : [])];
}

/** @param {any} found */
function record(found) {
  const rows = Object.entries(found.fields ?? found.record ?? {}).map(([name, value]) =>
    h("tr", null, h("th", { scope: "row", dir: "auto" }, name), h("td", { dir: "auto" }, String(value ?? ""))),
  );
  return h("table", { class: "record" }, h("tbody", null, ...rows));
}

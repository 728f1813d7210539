// @ts-check
/** Chips in an answer, each named by what a reader recognises, and the card that explains one. */

import { h, icon, link, safeAddress } from "./dom.js";
import { t, tn } from "./words.js";

/** @typedef {import("./types.d.ts").Citation} Citation */
/** @typedef {import("./types.d.ts").Item} Item */

/**
 * @typedef {object} Reading what chips need of the conversation around them
 * @property {(marker: string) => Citation | undefined} citation
 * @property {(item: Item) => boolean} opensHere whether the source is one of the server's own
 * @property {(citation: Citation) => void} open
 * @property {((marker: string) => void) | null} why
 * @property {(marker: string) => string} earlier the question whose answer cites it before
 */

const MOST_PLACES = 5; // other places of a passage

const KINDS = { kb: t("Knowledge"), db: t("Database"), web: t("Web"), api: t("Catalogue"), tool: t("Tool"), mcp: t("Tool") };
const WITHIN = { kb: t("knowledge"), db: t("database"), web: t("web"), api: t("catalogue"), tool: t("tool"), mcp: t("tool") };

/**
 * Return the kind of a source for people.
 * @param {string} type
 */
export function kind(type) {
  return KINDS[/** @type {keyof typeof KINDS} */ (type)] ?? type;
}

/**
 * Return the kind of a source within a sentence.
 * @param {string} type
 */
export function kindWithin(type) {
  return WITHIN[/** @type {keyof typeof WITHIN} */ (type)] ?? type;
}

/**
 * Return where a source is: its collection, model or host.
 * @param {Item} item
 */
export function place(item) {
  if (item.model || item.collection) return (item.model || item.collection).split(".").at(-1) ?? "";
  const url = safeAddress(item.url);
  return url ? new URL(url).host.replace(/^www\./, "") : kind(item.type);
}

/** @param {Item} item */
function label(item) {
  if (item.type === "web") return place(item);
  if (item.query) return `${place(item)} · ${tn(item.query.rows, "{n} row", "{n} rows")}`;
  return item.title || place(item);
}

/**
 * Return the chips of markers that follow one another: those of one place are folded into one.
 * @param {string[]} markers
 * @param {Reading} reading
 */
export function chips(markers, reading) {
  /** @type {Map<string, Citation[]>} */
  const groups = new Map();
  for (const marker of new Set(markers)) {
    const citation = reading.citation(marker) ?? { marker, verdict: "unknown", item: null };
    const key = citation.item ? `${citation.verdict} ${place(citation.item)}` : marker;
    groups.set(key, [...(groups.get(key) ?? []), citation]);
  }
  const made = [...groups.values()].map((group) => chip(group, reading));
  return h("span", { class: "chips" }, ...made);
}

/**
 * @param {Citation[]} group
 * @param {Reading} reading
 */
function chip(group, reading) {
  const [first] = group;
  const item = first.item;
  if (!item) {
    const why = t("No source of this conversation has this id");
    return h("span", { class: "chip unknown", title: why, role: "note", "aria-label": `${first.marker}: ${why}` }, first.marker);
  }
  const doubtful = group.some((each) => each.missing?.length || unsupported(each).length);
  const name = group.length > 1 ? `${place(item)} · ${group.length}` : label(item);
  const earlier = first.verdict === "earlier";
  const said = [t("Source: {name}", { name }), earlier && t("of an earlier answer"), doubtful && t("doubtful")];
  const button = h(
    "button",
    {
      type: "button",
      class: `chip ${item.type} ${first.verdict}${doubtful ? " doubtful" : ""}`,
      "aria-label": said.filter(Boolean).join(", "),
    },
    earlier && icon("clock"),
    h("bdi", null, name),
  );
  const holder = h("span", { class: "holder" }, button);
  attachCard(holder, button, group, reading);
  return holder;
}

/**
 * Show the card of a chip while it is pointed at or has the focus. It stands behind the chip, so
 * that Tab leads into it.
 * @param {HTMLElement} holder
 * @param {HTMLButtonElement} button
 * @param {Citation[]} group
 * @param {Reading} reading
 */
function attachCard(holder, button, group, reading) {
  /** @type {HTMLElement | null} */
  let card = null;
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    card?.remove();
    card = null;
  };
  // What is opened from the card gives the focus back to the chip, since the card is gone then.
  const leave = () => {
    button.focus();
    hide();
  };
  const show = () => {
    clearTimeout(timer);
    if (card) return;
    card = h("span", { class: "card", popover: "manual", role: "group", "aria-label": t("Source") });
    card.append(...group.map((each) => section(each, reading, leave)));
    holder.append(card);
    card.showPopover();
    put(card, button);
  };
  const later = (/** @type {() => void} */ what, /** @type {number} */ ms) => {
    clearTimeout(timer);
    timer = setTimeout(what, ms);
  };
  holder.addEventListener("pointerenter", () => later(show, 120));
  holder.addEventListener("pointerleave", () => later(hide, 200));
  holder.addEventListener("focusin", show);
  holder.addEventListener("focusout", (event) => {
    if (!holder.contains(/** @type {Node | null} */ (event.relatedTarget))) hide();
  });
  holder.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !card) return;
    event.stopPropagation();
    leave();
  });
  button.addEventListener("click", () => {
    if (group.length > 1 || !group[0].item?.url) show();
    else reading.open(group[0]);
  });
}

/**
 * Put a card below its chip, or above it, within the window.
 * @param {HTMLElement} card
 * @param {HTMLElement} button
 */
function put(card, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = card;
  const below = at.bottom + 6 + height <= innerHeight || at.top < height + 12;
  card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  card.style.top = `${below ? at.bottom + 6 : at.top - height - 6}px`;
}

/**
 * @param {Citation} citation
 * @param {Reading} reading
 * @param {() => void} leave the card
 */
function section(citation, reading, leave) {
  const open = () => {
    leave();
    reading.open(citation);
  };
  const why = () => {
    leave();
    reading.why?.(citation.marker);
  };
  const item = /** @type {Item} */ (citation.item);
  const where = [place(item), item.document_id, item.published].filter(Boolean).join(" / ");
  const how = [kind(item.type), item.status, item.score ? t("score {score}", { score: item.score.toFixed(2) }) : ""];
  const before = citation.verdict === "earlier" ? reading.earlier(citation.marker) : "";
  return h(
    "span",
    { class: "source" },
    h(
      "span",
      { class: "title" },
      h("b", { dir: "auto" }, item.title || place(item)),
      h("span", null, how.filter(Boolean).join(" · ")),
    ),
    item.content && h("q", { class: "passage", dir: "auto" }, shortened(item)),
    citation.verdict === "earlier" &&
      h("span", { class: "note" }, t("Found for an earlier answer"), before && `: “${before}”`),
    (citation.missing ?? []).length > 0 &&
      h("span", { class: "note bad" }, t("Not in this source: {missing}", { missing: citation.missing?.join(", ") ?? "" })),
    ...unsupported(citation).map((each) =>
      h("span", { class: "note bad" }, t("Not supported:"), " ", h("q", { dir: "auto" }, each.sentence)),
    ),
    ...(citation.verified ?? [])
      .filter((each) => each.supported)
      .map((each) => h("span", { class: "note" }, t("Supported by"), " ", h("q", { dir: "auto" }, each.quote))),
    (item.also ?? []).length > 0 && h("span", { class: "note" }, t("The same text is in"), " ", ...others(item)),
    item.query && h("span", { class: "note" }, tn(item.query.rows, "Computed from {n} row", "Computed from {n} rows")),
    h(
      "span",
      { class: "foot" },
      h("span", { dir: "auto" }, where),
      reading.opensHere(item)
        ? h("button", { type: "button", onclick: open }, t("Open"))
        : safeAddress(item.url) && link(item.url, t("Open")),
      reading.why &&
        h("button", { type: "button", lang: "en", dir: "ltr", onclick: why }, "Why here?"),
    ),
  );
}

/**
 * Return the sentences that a verifier found the source not to support.
 * @param {Citation} citation
 */
function unsupported(citation) {
  return (citation.verified ?? []).filter((each) => !each.supported);
}

/**
 * Return the other places of a passage, as links where they have an address.
 * @param {Item} item
 */
function others(item) {
  const places = item.also ?? [];
  const shown = places.slice(0, MOST_PLACES).flatMap((each, n) => {
    const name = each.title || each.document_id;
    const address = safeAddress(each.url);
    return [n ? ", " : "", address ? link(address, name) : h("bdi", null, name)];
  });
  return places.length > MOST_PLACES ? [...shown, ` ${t("and {n} more", { n: places.length - MOST_PLACES })}`] : shown;
}

/**
 * Return the beginning of a passage for a glance. Of prose, the lines of a paragraph are joined and
 * the heading, which the title says, is left out.
 * @param {Item} item
 */
function shortened(item) {
  let plain = item.content.trim();
  if (item.type === "kb" || item.type === "web") {
    plain = plain.replace(/^#+ .*\n+/, "").replace(/([^\n|])\n(?=[^\s|>#*+-])/g, "$1 ");
  }
  return plain.length > 420 ? `${plain.slice(0, 420)}…` : plain;
}

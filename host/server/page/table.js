// @ts-check
/** Tables of an answer: their columns sort, and they can be saved as CSV. */

import { h } from "./dom.js";
import { t, tn } from "./words.js";

/** @typedef {import("./types.d.ts").Block} Block */

/**
 * Return the figure of a table.
 * @param {Block} block
 * @param {(cell: Block) => Node[]} inside
 */
export function table(block, inside) {
  const rows = /** @type {Block[]} */ (block.children ?? []);
  const cells = (/** @type {Block} */ row) => /** @type {Block[]} */ (row.children ?? []);
  const heads = rows.filter((row) => cells(row).some((cell) => cell.head));
  const body = h("tbody");
  for (const row of rows) {
    if (heads.includes(row)) continue;
    const made = cells(row).map((cell) =>
      h("td", { dir: "auto", class: aligned(cell) }, ...inside(cell)),
    );
    body.append(h("tr", null, ...made));
  }
  const head = h("thead");
  for (const row of heads) {
    const made = cells(row).map((cell, column) => {
      const within = inside(cell);
      // The column of the citations has no name, and nothing to sort.
      if (!within.some((each) => each.textContent?.trim())) return h("th", { scope: "col", "aria-label": t("Source") });
      const sort = h("button", { type: "button", title: t("Sort") }, ...within);
      const th = h("th", { scope: "col", class: aligned(cell), "aria-sort": "none" }, sort);
      sort.addEventListener("click", () => sortBy(body, th, column));
      return th;
    });
    head.append(h("tr", null, ...made));
  }
  const shown = h("table", { dir: "auto" }, head, body);
  return h(
    "figure",
    { class: "table" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Table") }, shown),
    h(
      "figcaption",
      null,
      h("span", null, tn(body.rows.length, "{n} row", "{n} rows")),
      h("button", { type: "button", onclick: () => save(csv(shown), "table.csv") }, t("Download CSV")),
    ),
  );
}

/** @param {Block} cell */
function aligned(cell) {
  return cell.align === "right" ? "end" : cell.align === "center" ? "middle" : null;
}

/**
 * Sort the rows by a column: rising, then falling.
 * @param {HTMLTableSectionElement} body
 * @param {HTMLTableCellElement} th
 * @param {number} column
 */
function sortBy(body, th, column) {
  const falling = th.getAttribute("aria-sort") === "ascending";
  for (const each of th.parentElement?.children ?? []) each.setAttribute("aria-sort", "none");
  th.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const text = (/** @type {HTMLTableRowElement} */ row) => textOf(row.cells[column]);
  const rows = [...body.rows];
  const numbers = rows.map((row) => number(text(row)));
  const numeric = numbers.every((each, n) => each !== null || !text(rows[n]));
  const collator = new Intl.Collator(undefined, { numeric: true });
  const order = rows.map((row, n) => ({ row, text: text(row), number: numbers[n] ?? -Infinity }));
  order.sort((a, b) => (numeric ? a.number - b.number : collator.compare(a.text, b.text)));
  if (falling) order.reverse();
  body.append(...order.map((each) => each.row));
}

/**
 * Return the number that a cell shows, null for a text.
 * @param {string} text
 */
function number(text) {
  const bare = text.replace(/[\s\u00a0%€$£¥]/g, "").replace(/,(?=\d{3}\b)/g, "");
  return bare !== "" && Number.isFinite(Number(bare)) ? Number(bare) : null;
}

/**
 * Return the text of a cell without its chips.
 * @param {HTMLTableCellElement | undefined} cell
 */
function textOf(cell) {
  if (!cell) return "";
  const copy = /** @type {HTMLElement} */ (cell.cloneNode(true));
  for (const chip of copy.querySelectorAll(".chips")) chip.remove();
  return (copy.textContent ?? "").trim();
}

/**
 * Return a table as CSV. A text that a spreadsheet would run as a formula begins with `'`.
 * @param {HTMLTableElement} table
 */
export function csv(table) {
  const line = (/** @type {HTMLTableRowElement} */ row) =>
    [...row.cells]
      .map((cell) => {
        const text = textOf(cell);
        const safe = /^[=@\t\r]|^[+-](?![\d.,\s]+$)/.test(text) ? `'${text}` : text;
        return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
      })
      .join(",");
  return [...table.rows].map(line).join("\r\n") + "\r\n";
}

/**
 * Save a text as a file.
 * @param {string} text
 * @param {string} name
 */
export function save(text, name) {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

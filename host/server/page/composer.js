// @ts-check
/** Where a question is typed: it grows, keeps what was typed, takes files, and says whether it sends
 * or stops. */

import { h, icon } from "./dom.js";
import { Files } from "./files.js";
import { t } from "./words.js";

const HIGHEST = 240; // pixels

export class Composer {
  /**
   * @param {object} chat
   * @param {(text: string) => void} chat.ask
   * @param {() => void} chat.stop
   * @param {() => boolean} chat.busy
   * @param {() => string} chat.key what tells the drafts of two conversations apart
   */
  constructor(chat) {
    this.chat = chat;
    this.input = h("textarea", { rows: "1", "aria-label": t("Your question"), dir: "auto", maxlength: "100000", enterkeyhint: "send" });
    this.mode = h(
      "select",
      { "aria-label": t("Search"), title: t("Whether this question is searched for") },
      h("option", { value: "" }, t("Search: as configured")),
      h("option", { value: "on" }, t("Search: on")),
      h("option", { value: "off" }, t("Search: off")),
    );
    this.files = new Files(() => this.input.focus());
    this.button = h("button", { type: "submit", class: "send" });
    this.note = h("div", { class: "editing" });
    const row = h("div", { class: "row" }, this.files.button, this.files.input, this.mode, this.button);
    this.element = h("form", { class: "box" }, this.note, this.files.note, this.files.list, this.input, row);
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      if (chat.busy()) chat.stop();
      else chat.ask(this.input.value);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!chat.busy()) chat.ask(this.input.value);
    });
    this.input.addEventListener("input", () => this.#typed());
    this.input.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length || !this.files.most) return;
      event.preventDefault();
      this.files.add(files);
    });
    this.draw(null);
  }

  /** Whether the next question is searched for; nothing where the assistant decides. */
  get search() {
    return this.mode.value === "" ? {} : { search: this.mode.value === "on" };
  }

  /**
   * Set the text, as if it had been typed.
   * @param {string} text
   */
  set(text) {
    this.input.value = text;
    this.#typed();
  }

  /**
   * Take files that are dropped on a node, which says so while they are above it.
   * @param {HTMLElement} node
   */
  takeDrops(node) {
    const carries = (/** @type {DragEvent} */ event) => this.files.most > 0 && event.dataTransfer?.types.includes("Files");
    node.addEventListener("dragover", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      node.classList.add("dropping");
    });
    node.addEventListener("dragleave", (event) => {
      if (!node.contains(/** @type {Node | null} */ (event.relatedTarget))) node.classList.remove("dropping");
    });
    node.addEventListener("drop", (event) => {
      node.classList.remove("dropping");
      if (!carries(event)) return;
      event.preventDefault();
      this.files.add([...(event.dataTransfer?.files ?? [])]);
    });
  }

  /** Show what was typed before a reload, unless something is typed already. */
  restore() {
    try {
      this.input.value ||= sessionStorage.getItem(this.chat.key()) ?? "";
    } catch {
      return; // a site may forbid it
    }
    this.#grow();
  }

  /**
   * Show whether it sends or stops, and with `cancel` that an earlier question is edited.
   * @param {(() => void) | null} cancel
   */
  draw(cancel) {
    const busy = this.chat.busy();
    const name = busy ? t("Stop") : t("Send");
    if (this.button.getAttribute("aria-label") !== name) {
      this.button.setAttribute("aria-label", name);
      this.button.replaceChildren(icon(busy ? "stop" : "send"), h("span", null, name));
    }
    const said = cancel
      ? [
          h("span", null, t("A new version of the question; what follows it stays in its branch.")),
          h("button", { type: "button", onclick: cancel }, t("Cancel")),
        ]
      : [];
    this.note.replaceChildren(...said);
  }

  #typed() {
    this.#grow();
    try {
      if (this.input.value) sessionStorage.setItem(this.chat.key(), this.input.value);
      else sessionStorage.removeItem(this.chat.key());
    } catch {
      // A site may forbid it; then a draft does not survive a reload.
    }
  }

  #grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, HIGHEST)}px`;
  }
}

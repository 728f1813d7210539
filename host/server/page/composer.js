// @ts-check
/** Where a question is typed: it grows, keeps what was typed, and says whether it sends or stops. */

import { h, icon } from "./dom.js";

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
    this.input = h("textarea", { rows: "1", "aria-label": "Your question", dir: "auto", maxlength: "100000", enterkeyhint: "send" });
    this.mode = h(
      "select",
      { "aria-label": "Search", title: "Whether this question is searched for" },
      h("option", { value: "" }, "Search: as configured"),
      h("option", { value: "on" }, "Search: on"),
      h("option", { value: "off" }, "Search: off"),
    );
    this.button = h("button", { type: "submit", class: "send" });
    this.note = h("div", { class: "editing" });
    this.element = h("form", { class: "box" }, this.note, this.input, h("div", { class: "row" }, this.mode, this.button));
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
    const name = this.chat.busy() ? "Stop" : "Send";
    if (this.button.getAttribute("aria-label") !== name) {
      this.button.setAttribute("aria-label", name);
      this.button.replaceChildren(icon(name === "Stop" ? "stop" : "send"), h("span", null, name));
    }
    const said = cancel
      ? [
          h("span", null, "A new version of the question; what follows it stays in its branch."),
          h("button", { type: "button", onclick: cancel }, "Cancel"),
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

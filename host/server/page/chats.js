// @ts-check
/** The list of chats beside the conversation: find, rename, delete. */

import { h, keepingFocus } from "./dom.js";
import { t } from "./words.js";

/** @typedef {import("./types.d.ts").Chat} Chat */

export class ChatList {
  /**
   * @param {HTMLElement} place
   * @param {HTMLInputElement} find
   * @param {import("./api.js").Server} server
   * @param {{open: (chat: Chat) => void, gone: (id: string) => void, fail: (error: unknown) => void}} page
   */
  constructor(place, find, server, page) {
    this.place = place;
    this.find = find;
    this.server = server;
    this.page = page;
    this.current = "";
    /** @type {Chat[]} */
    this.chats = [];
    this.next = "";
    find.addEventListener("input", () => void this.load());
  }

  /** Load the newest chats, those whose title has what is searched for. */
  async load() {
    const words = this.find.value.trim();
    try {
      const found = await this.server.json("GET", `/api/chats?limit=50&q=${encodeURIComponent(words)}`);
      if (words !== this.find.value.trim()) return;
      this.chats = found.chats;
      this.next = found.next ?? "";
      this.draw();
    } catch (error) {
      this.page.fail(error);
    }
  }

  async #more() {
    const words = encodeURIComponent(this.find.value.trim());
    const path = `/api/chats?limit=50&q=${words}&after=${encodeURIComponent(this.next)}`;
    try {
      const found = await this.server.json("GET", path);
      this.chats.push(...found.chats);
      this.next = found.next ?? "";
      this.draw();
    } catch (error) {
      this.page.fail(error);
    }
  }

  draw() {
    this.find.hidden = this.chats.length < 8 && !this.find.value;
    const today = new Date().setHours(0, 0, 0, 0);
    const groups = [
      { name: t("Today"), chats: this.chats.filter((each) => each.changed_at >= today) },
      { name: t("Earlier"), chats: this.chats.filter((each) => each.changed_at < today) },
    ];
    /** @type {HTMLElement[]} */
    const made = groups
      .filter((group) => group.chats.length)
      .flatMap((group) => [
        h("h2", null, group.name),
        h("ul", null, ...group.chats.map((chat) => this.#entry(chat))),
      ]);
    if (!made.length) made.push(h("p", { class: "empty" }, this.find.value ? t("No chat has this in its title.") : t("Your chats are kept here.")));
    if (this.next) made.push(h("button", { type: "button", class: "note", onclick: () => this.#more() }, t("Show older ones")));
    keepingFocus(this.place, () => this.place.replaceChildren(...made));
  }

  /** @param {Chat} chat */
  #entry(chat) {
    const here = chat.id === this.current;
    const title = chat.title || t("New chat");
    const href = `#${new URLSearchParams({ a: chat.assistant_id, c: chat.id })}`;
    const open = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.page.open(chat);
    };
    const more = h("button", { type: "button", class: "more", id: `more ${chat.id}`, "aria-label": t("Rename or delete “{title}”", { title }), onclick: () => this.#change(chat) }, "…");
    return h("li", { class: here ? "current" : null }, h("a", { href, "aria-current": here ? "page" : null, onclick: open, title, dir: "auto" }, h("bdi", null, title)), more);
  }

  /** @param {Chat} chat */
  #change(chat) {
    const input = h("input", { type: "text", maxlength: "200", value: chat.title, dir: "auto" });
    const remove = h("button", { type: "button", class: "bad" }, t("Delete"));
    const dialog = h(
      "dialog",
      { "aria-label": t("Rename or delete the chat") },
      h(
        "form",
        { method: "dialog" },
        h("label", null, t("Title"), input),
        h("div", { class: "row" }, remove, h("button", { type: "submit", value: "", formnovalidate: true }, t("Cancel")), h("button", { type: "submit", value: "save", class: "go" }, t("Save"))),
      ),
    );
    const path = `/api/chats/${encodeURIComponent(chat.id)}`;
    let sure = false;
    remove.addEventListener("click", () => {
      if (!sure) {
        sure = true;
        remove.textContent = t("Delete for ever?");
        return;
      }
      dialog.close("delete");
    });
    // Enter in the field saves.
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      dialog.close("save");
    });
    dialog.addEventListener("close", async () => {
      dialog.remove();
      try {
        if (dialog.returnValue === "save") await this.server.json("PATCH", path, { title: input.value.trim() });
        else if (dialog.returnValue === "delete") {
          await this.server.json("DELETE", path);
          this.page.gone(chat.id);
        }
        if (dialog.returnValue) await this.load();
      } catch (error) {
        this.page.fail(error);
      }
      // The list may have been drawn anew meanwhile; of a deleted chat the next one is there.
      const next = document.getElementById(`more ${chat.id}`) ?? this.place.querySelector("a, button");
      /** @type {HTMLElement | null} */ (next)?.focus();
    });
    document.body.append(dialog);
    dialog.showModal();
  }
}

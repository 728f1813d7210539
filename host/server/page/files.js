// @ts-check
/** The files of a question: chosen, dropped or pasted, shown as chips, and sent as parts. */

import { h, icon } from "./dom.js";
import { t } from "./words.js";

/** @typedef {import("./types.d.ts").Attached} Attached */

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MB = 1024 * 1024;

export class Files {
  /** @param {() => void} changed called when files come or go */
  constructor(changed) {
    this.changed = changed;
    /** @type {Attached[]} */
    this.files = [];
    this.most = 0;
    this.fileMb = 0;
    this.input = h("input", { type: "file", multiple: true, hidden: true, tabindex: "-1" });
    this.button = h("button", { type: "button", class: "attach", "aria-label": t("Attach files"), title: t("Attach files"), hidden: true, onclick: () => this.input.click() }, icon("clip"));
    this.list = h("ul", { class: "files", "aria-label": t("Attached files"), hidden: true });
    this.note = h("p", { class: "trouble", role: "alert", hidden: true });
    this.input.addEventListener("change", () => {
      this.add([...(this.input.files ?? [])]);
      this.input.value = "";
    });
  }

  /**
   * Set what the server takes; with no files the button is hidden.
   * @param {number} most
   * @param {number} fileMb
   */
  allow(most, fileMb) {
    this.most = most;
    this.fileMb = fileMb;
    this.button.hidden = most === 0;
  }

  /**
   * Take files as those of the next question; says which ones the server would refuse.
   * @param {File[]} files
   */
  add(files) {
    const large = files.filter((file) => file.size > this.fileMb * MB);
    const fitting = files.filter((file) => !large.includes(file));
    const left = Math.max(0, this.most - this.files.length);
    for (const file of fitting.slice(0, left)) this.files.push({ name: file.name || "picture", file, part: null });
    this.note.textContent = [
      ...large.map((file) => t("{name} is larger than {mb} MB.", { name: file.name, mb: this.fileMb })),
      fitting.length > left ? t("A question has at most {n} files.", { n: this.most }) : "",
    ].filter(Boolean).join(" ");
    this.#draw();
  }

  /**
   * Show these files, those of an earlier question.
   * @param {Attached[]} files
   */
  set(files) {
    this.files = [...files];
    this.note.textContent = "";
    this.#draw();
  }

  /**
   * Return the files as parts of a message. Throws an Error for a file that cannot be read.
   * @param {Attached[]} files
   * @returns {Promise<unknown[]>}
   */
  static async parts(files) {
    for (const each of files) {
      if (each.part || !each.file) continue;
      const url = await dataUrl(each.file);
      each.part = PICTURES.includes(each.file.type)
        ? { type: "image_url", image_url: { url, filename: each.name } }
        : { type: "file", file: { filename: each.name, file_data: url } };
    }
    return files.map((each) => each.part);
  }

  #draw() {
    this.list.replaceChildren(...this.files.map((each, at) => chip(each, () => this.#remove(at))));
    this.list.hidden = this.files.length === 0;
    this.note.hidden = !this.note.textContent;
    this.changed();
  }

  /** @param {number} at */
  #remove(at) {
    this.files.splice(at, 1);
    this.note.textContent = "";
    this.#draw();
    // The one that took its place, else the button: focus is never lost.
    const next = /** @type {HTMLElement | undefined} */ (this.list.querySelectorAll("button")[Math.min(at, this.files.length - 1)]);
    (next ?? this.button).focus();
  }
}

/**
 * Return the files of a stored question.
 * @param {any} content
 * @returns {Attached[]}
 */
export function filesOf(content) {
  const parts = Array.isArray(content) ? content : [];
  return parts
    .filter((part) => part?.type === "file" || part?.type === "image_url")
    .map((part) => ({ name: String((part.file ?? part.image_url)?.filename || "picture"), file: null, part }));
}

/**
 * Return the list of a question's files; null without files.
 * @param {Attached[]} files
 */
export function fileList(files) {
  return files.length ? h("ul", { class: "files", "aria-label": t("Attached files") }, ...files.map((each) => chip(each, null))) : null;
}

/**
 * @param {Attached} file
 * @param {(() => void) | null} remove
 */
function chip(file, remove) {
  const away = remove && h("button", { type: "button", "aria-label": t("Remove {name}", { name: file.name }), onclick: remove }, icon("close"));
  return h("li", null, icon("clip"), h("bdi", null, file.name), away);
}

/**
 * @param {File} file
 * @returns {Promise<string>}
 */
function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(new Error(t("{name} cannot be read.", { name: file.name }))));
    reader.readAsDataURL(file);
  });
}

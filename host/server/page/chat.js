// @ts-check
/**
 * `<groundhook-chat>`: a conversation with an assistant. The page of the server and the pages of
 * other sites use the same element (docs/page.md).
 */

import { AnswerView, judged, searched } from "./answer.js";
import { Problem, Server } from "./api.js";
import { Composer } from "./composer.js";
import { safeAddress, h, icon, sheets } from "./dom.js";
import { Files, filesOf } from "./files.js";
import { openSource } from "./source.js";
import { save } from "./table.js";
import { newTurn, step, turnsOf } from "./turn.js";
import { DIRECTION, LANGUAGE, t, tn } from "./words.js";

/** @typedef {import("./types.d.ts").Turn} Turn */
/** @typedef {import("./types.d.ts").Assistant} Assistant */

const SPOKEN_MS = 20_000; // a screen reader has taken what it says
const PART = 30; // messages that are loaded at once
const REFUSED = [400, 404, 413, 422]; // answers to a question that may be asked in another form
const STYLES = await sheets("tokens.css", "chat.css");
const HOME = new URL(import.meta.url).origin;

/**
 * Return the content of a question, whose files must have been read.
 * @param {Turn} turn
 */
function contentOf(turn) {
  if (!turn.files.length) return turn.question;
  const text = turn.question ? [{ type: "text", text: turn.question }] : [];
  return [...text, ...turn.files.map((each) => each.part)];
}

/**
 * Return what is said of a block: without its buttons, and of a table how long it is.
 * @param {HTMLElement} block
 */
function spoken(block) {
  const copy = /** @type {HTMLElement} */ (block.cloneNode(true));
  const rows = copy.querySelectorAll("tbody tr").length;
  if (rows) return `${t("Table")}: ${tn(rows, "{n} row", "{n} rows")}`;
  for (const chip of copy.querySelectorAll(".chip")) chip.replaceWith(` (${chip.textContent})`);
  for (const other of copy.querySelectorAll("button, .card")) other.remove();
  return copy.textContent ?? "";
}

export class GroundhookChat extends HTMLElement {
  static observedAttributes = ["server", "assistant", "chat", "token", "open"];

  constructor() {
    super();
    this.shadow = this.attachShadow({ mode: "open" });
    this.shadow.adoptedStyleSheets = STYLES;
    this.server = new Server("", () => this.getAttribute("token") ?? "");
    /** @type {Turn[]} */
    this.turns = [];
    /** @type {AnswerView[]} */
    this.views = [];
    /** @type {Assistant | null} */
    this.assistant = null;
    this.kept = false;
    this.earlier = false;
    this.chatId = "";
    /** Whether answers have "Why?": the page around shows what it opens. */
    this.authors = false;
    /** @type {AbortController | null} */
    this.running = null;
    /** @type {Turn | null} */
    this.editing = null;
    this.generation = 0;
    /** @type {Promise<void>} */
    this.ready = Promise.resolve();
    this.spoken = 0;
    this.drawing = false;
    this.list = h("div", { class: "list", role: "log", "aria-label": t("Conversation"), "aria-live": "off" });
    this.hello = h("div", { class: "hello" });
    this.status = h("div", { class: "status" });
    this.talk = h("div", { class: "talk", tabindex: "-1" }, this.hello, this.list, this.status);
    /** The turn whose progress is said. @type {Turn | null} */
    this.asked = null;
    this.said = ""; // of its progress
    this.spokenText = h("div", { class: "spoken", "aria-live": "polite" });
    this.composer = new Composer({
      ask: (text) => void this.ask(text),
      stop: () => void this.stop(),
      busy: () => this.busy,
      key: () => `groundhook-draft ${this.server.base} ${this.getAttribute("assistant") ?? ""} ${this.chatId}`,
    });
    this.launcher = h("button", { type: "button", class: "launcher", "aria-label": t("Open the chat"), hidden: true }, icon("talk"));
    this.closer = h("button", { type: "button", class: "closer", "aria-label": t("Close the chat") }, icon("close"));
    this.name = h("bdi");
    this.head = h("div", { class: "head", hidden: true }, h("b", null, this.name), this.closer);
    this.panel = h("div", { class: "panel", role: "group" }, this.head, this.talk, this.composer.element, this.spokenText);
    this.shadow.append(h("div", { class: "root", lang: LANGUAGE, dir: DIRECTION }, this.launcher, this.panel));
    this.composer.takeDrops(this.panel);
    this.#listen();
  }

  connectedCallback() {
    this.#openOrClose();
    document.addEventListener("visibilitychange", this);
    void this.start();
  }

  disconnectedCallback() {
    document.removeEventListener("visibilitychange", this);
    this.running?.abort();
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} now
   */
  attributeChangedCallback(name, before, now) {
    if (!this.isConnected || before === now) return;
    if (name === "open") this.#openOrClose();
    else if (name === "token") void this.#signedIn(before);
    else if (name === "chat" ? (now ?? "") !== this.chatId : true) void this.start();
  }

  /** Whether a turn is under way. */
  get busy() {
    return this.running !== null;
  }

  // ---- what the page around may call

  /**
   * Load the assistant and the chat that the attributes name. A question that is asked before waits
   * for it.
   */
  start() {
    this.ready = this.#start();
    return this.ready;
  }

  async #start() {
    const generation = (this.generation += 1);
    this.running?.abort();
    this.running = null;
    const given = this.getAttribute("server") ?? (HOME === location.origin ? "" : HOME);
    this.server.base = given.replace(/\/+$/, "");
    this.chatId = this.getAttribute("chat") ?? "";
    this.assistant = null;
    this.editing = null;
    this.#show([]);
    try {
      const assistant = this.getAttribute("assistant");
      if (!assistant) throw new Problem(0, "usage", t("The element needs the attribute {name}.", { name: "`assistant`" }));
      const [me, found] = await Promise.all([
        this.server.json("GET", "/api/me"),
        this.server.json("GET", `/api/assistants/${encodeURIComponent(assistant)}`),
      ]);
      if (generation !== this.generation) return;
      this.assistant = found;
      this.kept = Boolean(me.user) && me.scopes.includes("chats") && !this.hasAttribute("unkept");
      this.#introduce();
      if (this.kept && this.chatId) await this.#load(generation);
    } catch (error) {
      if (generation === this.generation) this.#fail(error);
    }
    this.composer.restore();
  }

  #restart() {
    this.#leave();
    void this.start();
  }

  /** Begin a conversation without messages. */
  newChat() {
    this.setAttribute("chat", "");
    this.chatId = "";
    void this.start().then(() => this.composer.input.focus());
  }

  /**
   * Ask a question, as if it had been typed.
   * @param {string} text
   */
  async ask(text) {
    const question = text.trim();
    const { files } = this.composer.files;
    if (!(question || files.length) || this.busy) return;
    this.#leave();
    await this.ready;
    if (this.busy || !this.assistant) return;
    const edited = this.editing;
    this.editing = null;
    const turn = newTurn(question, files);
    if (edited) this.#cut(this.turns.indexOf(edited));
    this.#add(turn);
    this.composer.set(""); // before the chat has an id, under which another draft is kept
    this.composer.files.set([]);
    await this.#run(turn, async (following) => {
      const { search } = this.composer;
      const locale = this.getAttribute("locale");
      const options = locale ? { options: { locale } } : {};
      const parts = await Files.parts(files);
      if (!this.kept) {
        const messages = [...this.#history(turn), { role: "user", content: contentOf(turn) }];
        const body = { assistant: this.getAttribute("assistant"), messages, ...search, ...options };
        return this.server.ask("/api/turns", body, following);
      }
      if (!this.chatId) await this.#makeChat(following);
      const path = `/api/chats/${encodeURIComponent(this.chatId)}/turns`;
      const edit = edited?.questionId ? { edit: edited.questionId } : {};
      const asked = parts.length ? { content: contentOf(turn) } : { text: question };
      return this.server.ask(path, { ...asked, ...edit, ...search, ...options }, following);
    });
  }

  /** End the turn that is under way; what has come stays. */
  async stop() {
    const turn = this.turns.at(-1);
    if (!this.running || !turn) return;
    if (!turn.id) return this.running.abort();
    /** @type {Record<string, string>} */
    const headers = turn.resume ? { "x-groundhook-resume": turn.resume } : {};
    const path = `/api/turns/${encodeURIComponent(turn.id)}/stop`;
    await this.server.send("POST", path, { headers }).catch((error) => this.#fail(error));
  }

  // ---- turns

  /**
   * Follow a turn to its end.
   * @param {Turn} turn
   * @param {(following: import("./api.js").Following) => Promise<void>} begin
   */
  async #run(turn, begin) {
    const running = (this.running = new AbortController());
    this.spoken = 0;
    this.asked = turn;
    this.said = "";
    this.spokenText.replaceChildren();
    this.#changed();
    try {
      await begin({
        signal: running.signal,
        onturn: (id, resume) => Object.assign(turn, { id, resume }),
        onevent: (event) => {
          step(turn, event);
          this.#changed();
        },
        onwait: () => {
          turn.state = "waiting";
          this.#changed();
        },
      });
    } catch (error) {
      if (!running.signal.aborted) this.#broken(turn, error);
    }
    if (this.running !== running) return;
    this.running = null;
    if (!turn.end) turn.state = "broken";
    if (this.kept && this.chatId) await this.#settle(turn);
    this.#changed();
    if (turn.end) this.#tell("answer", { turn: turn.id, chat: this.chatId, content: turn.end.content });
  }

  /**
   * Take what the server has stored of the turn: the ids of its messages, and the chat's title.
   * @param {Turn} turn
   */
  async #settle(turn) {
    try {
      const chat = await this.server.json("GET", `/api/chats/${encodeURIComponent(this.chatId)}?limit=2`);
      const stored = chat.messages.at(-1);
      const question = chat.messages.findLast((/** @type {any} */ each) => each.role === "user");
      if (question && turn === this.turns.at(-1)) {
        turn.questionId = question.id;
        turn.questionSiblings = question.siblings;
        turn.files = filesOf(question.content); // by their ids, without their contents
      }
      if (stored?.role === "assistant" && stored.answer?.turn_id === turn.id) {
        turn.messageId = stored.id;
        turn.siblings = stored.siblings;
      }
      this.#tell("chat", { id: chat.id, title: chat.title, assistant: chat.assistant_id });
    } catch {
      // The answer is there; only its branches and feedback are missing until the page is loaded.
    }
  }

  /**
   * @param {Turn} turn
   * @param {unknown} error
   */
  #broken(turn, error) {
    if (error instanceof Problem && error.code === "chat_busy") {
      // Another tab asks in this chat: follow that turn, and keep the question.
      this.composer.set(turn.question);
      this.composer.files.set(turn.files);
      queueMicrotask(() => this.start());
      return;
    }
    if (error instanceof Problem && (error.status === 401 || (turn.files.length && REFUSED.includes(error.status)))) {
      if (error.status === 401) this.#cut(this.turns.indexOf(turn));
      this.composer.set(turn.question);
      this.composer.files.set(turn.files);
    }
    this.#fail(error, turn);
  }

  /**
   * Say what went wrong: at the turn, or where there is none at the end of the conversation.
   * @param {unknown} error
   * @param {Turn} [turn]
   */
  #fail(error, turn) {
    const problem = error instanceof Problem ? error : new Problem(0, "internal", String(error));
    const detail = { status: problem.status, code: problem.code, message: problem.message };
    const shown = this.#tell("error", detail);
    if (problem.status === 401) {
      this.status.replaceChildren(h("p", { class: "trouble", role: "alert" }, t("Please sign in: the conversation goes on after it.")));
      return;
    }
    if (!shown) return;
    if (turn && this.turns.includes(turn)) turn.troubles.push({ code: problem.code, message: problem.message });
    else {
      const again = h("button", { type: "button", class: "quiet", onclick: () => this.#restart() }, t("Try again"));
      this.status.replaceChildren(h("div", { class: "trouble", role: "alert" }, h("p", null, problem.message)), again);
    }
    this.#changed();
  }

  /** @param {string | null} before */
  async #signedIn(before) {
    // A token that replaces one which ended: what is shown and typed stays.
    if (before && this.turns.length) this.status.replaceChildren();
    else await this.start();
  }

  /**
   * The messages before a turn.
   * @param {Turn} turn
   */
  #history(turn) {
    return this.turns
      .slice(0, this.turns.indexOf(turn))
      .filter((each) => each.end?.content)
      .flatMap((each) => [
        { role: "user", content: contentOf(each) },
        { role: "assistant", content: each.end?.content },
      ]);
  }

  /** @param {import("./api.js").Following} following */
  async #makeChat(following) {
    const body = { assistant: this.getAttribute("assistant") };
    const answer = await this.server.again(following, () =>
      this.server.send("POST", "/api/chats", { body, signal: following.signal }),
    );
    const chat = await answer.json();
    this.chatId = chat.id;
    this.setAttribute("chat", chat.id);
    this.#tell("chat", { id: chat.id, title: chat.title || (this.turns.at(-1)?.question ?? ""), assistant: chat.assistant_id });
  }

  /**
   * @param {Turn} turn
   */
  async #again(turn) {
    if (this.busy) return;
    this.#leave();
    const at = this.turns.indexOf(turn);
    if (!this.kept || !turn.messageId) {
      this.editing = turn;
      this.composer.files.set(turn.files);
      await this.ask(turn.question);
      return;
    }
    const fresh = newTurn(turn.question, turn.files);
    fresh.questionId = turn.questionId;
    fresh.questionSiblings = turn.questionSiblings;
    this.#cut(at);
    this.#add(fresh);
    const path = `/api/chats/${encodeURIComponent(this.chatId)}/regenerate`;
    await this.#run(fresh, (following) => this.server.ask(path, { message_id: turn.messageId }, following));
  }

  /**
   * Run the calls that wait in an answer, or tell the model that they are refused.
   * @param {Turn} turn
   * @param {boolean} approved
   * @param {string} answer to a question of a hook
   */
  async #decide(turn, approved, answer = "") {
    if (this.busy) return;
    this.#leave();
    const asked = turn.pending.some((each) => each.question);
    const names = asked
      ? [answer || t("No answer")]
      : turn.pending.map((each) => approved ? t("Approved: {name}", { name: each.name }) : t("Refused: {name}", { name: each.name }));
    const fresh = newTurn(names.join("\n"));
    fresh.decision = true;
    this.#add(fresh);
    const path = `/api/chats/${encodeURIComponent(this.chatId)}/decisions`;
    const body = { message_id: turn.messageId, approved, reason: answer };
    await this.#run(fresh, (following) => this.server.ask(path, body, following));
  }

  /**
   * Show the branch of a message.
   * @param {string} id
   */
  async #branch(id) {
    try {
      const path = `/api/chats/${encodeURIComponent(this.chatId)}`;
      const name = this.shadow.activeElement?.ariaLabel ?? "";
      const n = this.views.findIndex((view) => view.element.contains(this.shadow.activeElement));
      await this.server.json("PATCH", path, { branch: id });
      await this.#load(this.generation);
      if (n < 0) return;
      // The same button of the branch that is shown now, or at its end the other one.
      const buttons = [.../** @type {NodeListOf<HTMLButtonElement>} */ (this.views[n]?.element.querySelectorAll(".branches button:not(:disabled)") ?? [])];
      (buttons.find((each) => each.ariaLabel === name) ?? buttons[0])?.focus();
    } catch (error) {
      this.#fail(error);
    }
  }

  // ---- stored messages

  /** @param {number} generation */
  async #load(generation) {
    const path = `/api/chats/${encodeURIComponent(this.chatId)}`;
    const chat = await this.server.json("GET", `${path}?view=blocks&limit=${PART}`);
    if (generation !== this.generation) return;
    this.earlier = chat.earlier;
    const turns = turnsOf(chat.messages);
    this.#show(turns);
    this.#tell("chat", { id: chat.id, title: chat.title, assistant: chat.assistant_id });
    const last = turns.at(-1);
    if (!chat.running || !last) return;
    // The turn goes on while nobody reads it.
    if (last.messageId) this.#add(newTurn(last.question));
    const turn = /** @type {Turn} */ (this.turns.at(-1));
    Object.assign(turn, { state: "running", id: chat.running });
    void this.#run(turn, (following) => this.server.attach(chat.running, "", following));
  }

  async #loadEarlier() {
    const [first] = this.turns;
    if (!first?.questionId || !this.earlier) return;
    this.earlier = false;
    const path = `/api/chats/${encodeURIComponent(this.chatId)}/messages`;
    const query = `view=blocks&limit=${PART}&before=${encodeURIComponent(first.questionId)}`;
    const part = await this.server.json("GET", `${path}?${query}`);
    const below = this.talk.scrollHeight - this.talk.scrollTop;
    const turns = turnsOf(part.messages);
    const views = turns.map((turn) => new AnswerView(turn, this.#owner()));
    this.turns.unshift(...turns);
    this.views.unshift(...views);
    this.list.prepend(...views.map((each) => each.element));
    this.earlier = part.earlier;
    this.talk.scrollTop = this.talk.scrollHeight - below;
  }

  /** Another tab may have changed the chat. @param {Event} _event */
  async handleEvent(_event) {
    if (document.visibilityState !== "visible" || this.busy || !this.kept || !this.chatId) return;
    const path = `/api/chats/${encodeURIComponent(this.chatId)}?limit=1`;
    const chat = await this.server.json("GET", path).catch(() => null);
    const last = this.turns.at(-1);
    if (!chat || this.busy || !last) return;
    if (chat.running || (last.messageId && chat.leaf !== last.messageId)) await this.#load(this.generation);
  }

  // ---- what is shown

  #listen() {
    this.talk.addEventListener("scroll", () => {
      if (this.talk.scrollTop < 200) void this.#loadEarlier().catch((error) => this.#fail(error));
    });
    this.launcher.addEventListener("click", () => {
      this.setAttribute("open", "true");
      this.composer.input.focus();
    });
    this.closer.addEventListener("click", () => this.#close());
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.getAttribute("open") === "true" && !event.isComposing) this.#close();
    });
  }

  #close() {
    this.setAttribute("open", "false");
    this.launcher.focus();
  }

  /** Leave a control that will be gone, for where the next question is written. */
  #leave() {
    const at = this.shadow.activeElement;
    if (!at || !this.talk.contains(at)) return;
    // On a telephone the keyboard would cover the answer.
    if (matchMedia("(hover: hover)").matches) this.composer.input.focus();
    else this.talk.focus();
  }

  #openOrClose() {
    const open = this.getAttribute("open");
    this.launcher.hidden = open !== "false";
    this.head.hidden = open === null;
    this.panel.hidden = open === "false";
  }

  /** Show what the assistant says of itself, with questions to begin with. */
  #introduce() {
    const about = this.assistant;
    const given = /** @type {any} */ (about?.placeholder);
    const said = typeof given === "object" && given ? given : { prompts: given ? [given] : [] };
    const prompts = (Array.isArray(said.prompts) ? said.prompts : []).slice(0, 3).map(String);
    this.composer.files.allow(about?.files ?? 0, about?.file_mb ?? 0);
    this.composer.input.placeholder = about?.name ? t("Ask {name}", { name: about.name }) : t("Ask");
    this.name.textContent = about?.name ?? "";
    this.panel.ariaLabel = about?.name || t("Conversation");
    this.hello.replaceChildren(
      h("h2", { dir: "auto" }, String(said.title ?? about?.name ?? "")),
      h("p", { dir: "auto" }, String(said.description ?? about?.description ?? "")),
      h(
        "div",
        { class: "prompts" },
        ...prompts.map((/** @type {string} */ text) => h("button", { type: "button", dir: "auto", onclick: () => this.ask(text) }, text)),
      ),
    );
    this.hello.hidden = this.turns.length > 0;
  }

  /** @param {Turn[]} turns */
  #show(turns) {
    this.turns = turns;
    this.earlier &&= turns.length > 0;
    this.views = turns.map((turn) => new AnswerView(turn, this.#owner()));
    this.list.replaceChildren(...this.views.map((each) => each.element));
    this.status.replaceChildren();
    this.hello.hidden = turns.length > 0 || !this.assistant;
    this.talk.scrollTop = this.talk.scrollHeight;
  }

  /** @param {Turn} turn */
  #add(turn) {
    const view = new AnswerView(turn, this.#owner());
    this.turns.push(turn);
    this.views.push(view);
    this.list.append(view.element);
    this.status.replaceChildren();
    this.hello.hidden = true;
    this.talk.scrollTop = this.talk.scrollHeight;
  }

  /**
   * Remove the turns from one on.
   * @param {number} at
   */
  #cut(at) {
    if (at < 0) return;
    for (const view of this.views.splice(at)) view.element.remove();
    this.turns.splice(at);
  }

  /** Draw what changed before the next frame, once for all events until then. */
  #changed() {
    if (this.drawing) return;
    this.drawing = true;
    const draw = () => {
      this.drawing = false;
      const follows = this.talk.scrollHeight - this.talk.scrollTop - this.talk.clientHeight < 80;
      const last = this.views.at(-1);
      if (this.busy) last?.update();
      else for (const view of this.views) view.update();
      if (follows) this.talk.scrollTop = this.talk.scrollHeight;
      this.composer.draw(this.editing && (() => this.#edit(null)));
      if (last) this.#speak(last);
    };
    // A page in the background has no frames.
    if (document.visibilityState === "visible") requestAnimationFrame(draw);
    else setTimeout(draw, 50);
  }

  /**
   * Put an earlier question into the composer, or leave it.
   * @param {Turn | null} turn
   */
  #edit(turn) {
    this.editing = turn;
    this.composer.set(turn?.question ?? "");
    this.composer.files.set(turn?.files ?? []);
    this.composer.input.focus();
    this.#changed();
  }

  /**
   * Speak the blocks that are complete; a screen reader hears sentences and not pieces of words.
   * @param {AnswerView} view
   */
  #speak(view) {
    this.#speakOfSearches(view.turn);
    if (this.busy === false && view.turn.state !== "done") return;
    const complete = view.turn.end ? view.nodes.length : view.nodes.length - 1;
    if (complete <= this.spoken || (!this.busy && this.spoken === 0 && view.turn.now === 0)) return;
    const texts = view.nodes.slice(this.spoken, complete).map(spoken);
    this.spoken = complete;
    this.#say(texts.join(" "));
    const sure = judged(view.turn).join(", ");
    if (sure) this.#say(sure);
  }

  /**
   * Say that the searches began, and once what they found.
   * @param {Turn} turn
   */
  #speakOfSearches(turn) {
    if (turn !== this.asked || !turn.searches.length) return;
    const { found, failed } = searched(turn);
    const done = turn.searches.every((each) => each.complete);
    const says = turn.blocks.length || done ? [found, failed].filter(Boolean).join(", ") : t("searching …");
    if (this.said === says || (this.said && this.said !== t("searching …"))) return;
    this.said = says;
    this.#say(says);
  }

  /**
   * Say something once. It does not stay: who reads on finds it in the conversation.
   * @param {string} text
   */
  #say(text) {
    const said = h("p", null, text);
    this.spokenText.append(said);
    setTimeout(() => said.remove(), SPOKEN_MS);
  }

  // ---- for its parts

  /** @returns {import("./answer.js").Owner} */
  #owner() {
    const chat = this;
    return {
      get kept() {
        return chat.kept;
      },
      get busy() {
        return chat.busy;
      },
      reading: (turn) => this.#reading(turn),
      ask: (text) => void this.ask(text),
      again: (turn) => void this.#again(turn),
      edit: (turn) => this.#edit(turn),
      last: (turn) => this.turns.at(-1) === turn,
      decide: (turn, approved, answer) => void this.#decide(turn, approved, answer),
      download: (table) => this.#download(table),
      show: (id) => void this.#branch(id),
      rate: (turn, rating, comment) => this.#rate(turn, rating, comment),
      why: this.authors ? (turn, marker = "") => this.#explain(turn, marker) : null,
    };
  }

  /**
   * @param {Turn} turn
   * @param {string} marker
   */
  #explain(turn, marker) {
    this.#tell("why", { turn, marker, messages: this.#history(turn) });
  }

  /**
   * @param {Turn} turn
   * @returns {import("./chips.js").Reading}
   */
  #reading(turn) {
    return {
      citation: (marker) => turn.citations.get(marker),
      opensHere: (item) => item.url.startsWith(this.server.address("/api/sources/")),
      open: (citation) => this.#open(citation),
      why: this.authors ? (marker) => this.#explain(turn, marker) : null,
      earlier: (marker) =>
        this.turns.find((each) => each !== turn && each.citations.get(marker)?.verdict === "ok")?.question ?? "",
    };
  }

  /** @param {import("./types.d.ts").Citation} citation */
  #open(citation) {
    const { item, marker, verdict } = citation;
    if (!item || !this.#tell("citation", { marker, verdict, item })) return;
    if (item.url.startsWith(this.server.address("/api/sources/"))) void openSource(this.shadow, this.server, item);
    else if (safeAddress(item.url)) window.open(item.url, "_blank", "noopener,noreferrer");
  }

  /**
   * Save all rows of a table. Throws Problem.
   * @param {import("./types.d.ts").LongTable} table
   */
  async #download(table) {
    const { pathname, search } = new URL(table.csv, location.href);
    const answer = await this.server.send("GET", pathname + search, { headers: { accept: "text/csv" } });
    save(await answer.text(), "rows.csv");
  }

  /**
   * @param {Turn} turn
   * @param {number} rating
   * @param {string} comment
   */
  async #rate(turn, rating, comment) {
    const body = { rating, comment };
    try {
      await this.server.json("PUT", `/api/messages/${encodeURIComponent(turn.messageId)}/feedback`, body);
      turn.feedback = body;
      this.#changed();
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Tell the page around; return false if it wants to do the rest itself.
   * @param {string} name
   * @param {unknown} detail
   */
  #tell(name, detail) {
    const event = new CustomEvent(`groundhook:${name}`, { detail, bubbles: true, composed: true, cancelable: true });
    return this.dispatchEvent(event);
  }
}

if (!customElements.get("groundhook-chat")) customElements.define("groundhook-chat", GroundhookChat);


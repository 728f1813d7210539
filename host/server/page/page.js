// @ts-check
/** The page around the conversation: signing in, assistants, chats, and the drawer for authors. */

import { Problem, Server } from "./api.js";
import { ChatList } from "./chats.js";
import { kindWithin } from "./chips.js";
import { h, icon } from "./dom.js";
import { Knowledge } from "./knowledge.js";
import { save } from "./table.js";
import { Why } from "./why.js";
import { Workbench } from "./workbench.js";
import { DIRECTION, LANGUAGE, t } from "./words.js";
import "./chat.js";

/** @typedef {import("./chat.js").GroundhookChat} GroundhookChat */
/** @typedef {import("./types.d.ts").Assistant} Assistant */

const TOKEN = "groundhook-token"; // of this tab alone
const ASSISTANT = "groundhook-assistant";
const VIEWS = [
  { name: "workbench", label: "Workbench", scope: "author" },
  { name: "knowledge", label: "Knowledge", scope: "kb" },
];
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const server = new Server("", () => sessionStorage.getItem(TOKEN) ?? "");
const chat = /** @type {GroundhookChat} */ (document.createElement("groundhook-chat"));
const why = new Why(at("why"), server, () => chat.getAttribute("assistant") ?? "");
const list = new ChatList(at("chats"), /** @type {HTMLInputElement} */ (at("find")), server, {
  open: (found) => show(found.assistant_id, found.id),
  gone: (id) => id === chat.chatId && show(chat.getAttribute("assistant") ?? "", ""),
  fail,
});
/** @type {Assistant[]} */
let assistants = [];
let first = ""; // the one that a newcomer asks
/** @type {HTMLDialogElement | null} */
let asking = null;
/** @type {{ close: () => void } | null} what is shown instead of the conversation */
let view = null;
/** @type {string[]} */
let scopes = [];

// ---- signing in

/** Take what the address brings, which is for one use, out of it. */
async function takeFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  const [link, token, to] = ["link", "token", "to"].map((name) => given.get(name));
  for (const name of ["link", "token", "to"]) given.delete(name);
  if (link || token || to) history.replaceState(null, "", given.size ? `#${given}` : location.pathname);
  if (token) sessionStorage.setItem(TOKEN, token);
  if (link) {
    try {
      await server.json("POST", "/api/session", { link });
    } catch (error) {
      // A link that was used is no matter where the session which it began goes on.
      if (!(error instanceof Problem && error.status === 401)) fail(error);
    }
  }
  return to ?? "";
}

/**
 * Ask for a key or a token until one is accepted.
 * @param {string} why
 * @returns {Promise<void>}
 */
function signIn(why) {
  if (asking) return new Promise((resolve) => asking?.addEventListener("close", () => resolve()));
  const input = h("input", { type: "password", autocomplete: "current-password", required: true, name: "key" });
  const told = h("p", { role: "alert", class: "bad" }, why);
  const commands = document.documentElement.dataset.key ? ["groundhook serve", "groundhook keys add"] : ["groundhook keys add"];
  const [begin, ...after] = (commands.length > 1 ? t("With the key that {command} prints, one of {command}, or a token of your organisation.") : t("With a key of {command}, or a token of your organisation.")).split("{command}");
  const form = h(
    "form",
    { class: "fields" },
    h("p", { class: "note" }, begin, ...after.flatMap((words, n) => [h("code", null, commands[n]), words])),
    h("label", null, t("Key or token"), input),
    told,
    h("div", { class: "row" }, h("button", { type: "submit", class: "go" }, t("Sign in"))),
  );
  const dialog = h("dialog", { "aria-labelledby": "sign-in" }, h("h2", { id: "sign-in" }, t("Sign in")), form);
  asking = dialog;
  // Without a session there is nothing behind the dialog.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const given = input.value.trim();
      told.textContent = ""; // the same words again are said again
      try {
        if (JWT.test(given)) sessionStorage.setItem(TOKEN, given);
        else {
          sessionStorage.removeItem(TOKEN);
          await server.json("POST", "/api/session", { key: given });
        }
        await server.json("GET", "/api/me");
      } catch (error) {
        sessionStorage.removeItem(TOKEN);
        told.textContent = error instanceof Error ? error.message : String(error);
        input.select();
        return;
      }
      asking = null;
      dialog.close();
      dialog.remove();
      resolve();
    });
  });
}

/** @returns {Promise<import("./types.d.ts").Me>} */
async function identify() {
  for (;;) {
    try {
      return await server.json("GET", "/api/me");
    } catch (error) {
      if (!(error instanceof Problem && error.status === 401)) throw error;
      sessionStorage.removeItem(TOKEN);
      await signIn("");
    }
  }
}

async function signOut() {
  sessionStorage.removeItem(TOKEN);
  await server.json("DELETE", "/api/session").catch(() => null);
  location.assign(location.pathname);
}

/** @param {unknown} error */
function fail(error) {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Problem && error.status === 401) void signIn(message).then(start);
  else at("chats").replaceChildren(h("p", { class: "empty bad", role: "alert" }, message));
}

// ---- assistants and chats

/**
 * Show a chat of an assistant, or a new one.
 * @param {string} assistant
 * @param {string} id
 */
function show(assistant, id) {
  const given = new URLSearchParams({ a: assistant, ...(id ? { c: id } : {}) });
  if (`#${given}` !== location.hash) history.pushState(null, "", `#${given}`);
  apply();
}

/** Show what the address names. */
function apply() {
  const given = new URLSearchParams(location.hash.slice(1));
  const wanted = given.get("a") || localStorage.getItem(ASSISTANT) || "";
  const found = assistants.find((each) => each.id === wanted) ?? assistants.find((each) => each.id === first) ?? assistants[0];
  if (!found) {
    at("conversation").replaceChildren(h("p", { class: "notice" }, t("There is no assistant that you may use.")));
    return;
  }
  localStorage.setItem(ASSISTANT, found.id);
  const [name, about] = [found.name || found.id, found.searches.length ? t("searches {kinds}", { kinds: found.searches.map(kindWithin).join(", ") }) : found.id];
  at("assistant").replaceChildren(name, h("small", null, about));
  at("pick").ariaLabel = t("Assistant: {name}", { name: `${name}, ${about}` });
  for (const each of at("assistants").children) each.ariaCurrent = each.id === `assistant ${found.id}` ? "true" : null;
  const id = given.get("c") ?? "";
  list.current = id;
  list.draw();
  why.close();
  closeSide();
  title("");
  if (showView(given, found.id)) return;
  const same = chat.isConnected && chat.getAttribute("assistant") === found.id;
  if (same && id && id === chat.chatId) return title(list.chats.find((each) => each.id === id)?.title ?? "");
  // Both attributes before the element is there, so that it begins once.
  chat.remove();
  chat.setAttribute("assistant", found.id);
  chat.setAttribute("chat", id);
  chat.chatId = id;
  at("conversation").replaceChildren(chat);
  if (matchMedia("(hover: hover)").matches) chat.composer.input.focus();
  else if (document.activeElement === document.body) at("heading").focus(); // no keyboard comes up
}

/**
 * Show the view that the address names, and return whether it names one that the person may use.
 * @param {URLSearchParams} given
 * @param {string} assistant
 */
function showView(given, assistant) {
  view?.close();
  view = null;
  const found = VIEWS.find((each) => scopes.includes(each.scope) && each.name === given.get("view"));
  drawViews(found?.name ?? "", assistant);
  if (!found) return false;
  chat.remove();
  title(found.label);
  at("export").hidden = true;
  const place = at("conversation");
  view = found.name === "workbench" ? new Workbench(place, server, assistant, given.get("q") ?? "") : new Knowledge(place, server, given.get("k") ?? "", assistant);
  return true;
}

/**
 * Draw the links to the views that the person may use.
 * @param {string} current
 * @param {string} assistant
 */
function drawViews(current, assistant) {
  const views = VIEWS.filter((each) => scopes.includes(each.scope));
  at("views").hidden = !views.length;
  at("views").replaceChildren(
    ...views.map(({ name, label }) =>
      h("a", { href: `#${new URLSearchParams({ a: assistant, view: name })}`, "aria-current": name === current ? "page" : null }, label),
    ),
  );
}

/** @param {string} text */
function title(text) {
  at("title").textContent = text || t("New chat");
  document.title = text ? `${text} – Groundhook` : "Groundhook";
  at("export").hidden = !chat.chatId;
}

async function exportChat() {
  try {
    const answer = await server.send("GET", `/api/chats/${encodeURIComponent(chat.chatId)}/export?format=markdown`);
    save(await answer.text(), `${at("title").textContent || "chat"}.md`);
  } catch (error) {
    fail(error);
  }
}

function closeSide() {
  const inside = at("side").contains(document.activeElement) && at("side").classList.contains("open");
  at("side").classList.remove("open");
  at("menu").setAttribute("aria-expanded", "false");
  // What is hidden loses the focus; where there is no menu the side stays.
  if (inside && at("menu").checkVisibility()) at("menu").focus();
}

async function start() {
  const me = await identify();
  const token = sessionStorage.getItem(TOKEN);
  if (token) chat.setAttribute("token", token);
  else chat.removeAttribute("token");
  scopes = me.scopes;
  chat.authors = scopes.includes("author");
  const keeps = Boolean(me.user) && me.scopes.includes("chats");
  const [found] = await Promise.all([server.json("GET", "/api/assistants"), keeps ? list.load() : null]);
  assistants = found.assistants;
  first = found.first ?? "";
  at("assistants").replaceChildren(
    ...assistants.map((each) =>
      h(
        "button",
        {
          type: "button",
          id: `assistant ${each.id}`,
          onclick: () => {
            at("assistants").hidePopover();
            show(each.id, "");
          },
        },
        h("bdi", null, each.name || each.id),
        h("small", { dir: "auto" }, each.description),
      ),
    ),
  );
  at("who").replaceChildren(
    h("span", { title: me.user }, me.anonymous ? t("Not signed in") : me.user || me.name),
    h("button", { type: "button", onclick: me.anonymous ? () => void signIn("").then(start) : signOut }, me.anonymous ? t("Sign in") : t("Sign out")),
  );
  apply();
}

document.documentElement.lang = LANGUAGE;
document.documentElement.dir = DIRECTION;
for (const [id, words] of Object.entries({ skip: t("To the question"), new: t("New chat"), export: t("Export"), title: t("New chat") })) at(id).textContent = words;
for (const [id, words] of Object.entries({ side: t("Chats"), menu: t("Chats"), assistants: t("Assistants"), find: t("Find a chat"), views: t("Tools") })) at(id).ariaLabel = words;
/** @type {HTMLInputElement} */ (at("find")).placeholder = t("Find a chat");
at("skip").addEventListener("click", () => /** @type {HTMLElement | null} */ (chat.isConnected ? chat.composer.input : at("conversation").querySelector("input, textarea, button"))?.focus());
at("new").prepend(icon("plus"));
at("pick").append(icon("down"));
at("menu").append(icon("menu"));
at("assistants").addEventListener("toggle", (event) => {
  if (/** @type {ToggleEvent} */ (event).newState === "open") /** @type {HTMLElement | null} */ (at("assistants").querySelector("[aria-current]"))?.focus();
});
at("assistants").addEventListener("keydown", (event) => {
  const all = /** @type {HTMLElement[]} */ ([...at("assistants").children]);
  const now = all.findIndex((each) => each === document.activeElement);
  const to = { ArrowUp: now - 1, ArrowDown: now + 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  all.at(to % all.length)?.focus();
});
at("new").addEventListener("click", () => {
  chat.remove(); // also from a new chat that is empty, to begin again
  show(chat.getAttribute("assistant") ?? "", "");
});
at("export").addEventListener("click", exportChat);
at("menu").addEventListener("click", () => {
  const open = at("side").classList.toggle("open");
  at("menu").setAttribute("aria-expanded", String(open));
  if (open) at("pick").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeSide();
});
at("conversation").addEventListener("pointerdown", closeSide);
addEventListener("popstate", apply); // also for another fragment
addEventListener("hashchange", () => {
  // A new link of `groundhook serve`, pasted into a tab of this page.
  if (/[#&](link|token|to)=/.test(location.hash)) location.reload();
});
chat.addEventListener("groundhook:chat", (event) => {
  const { id, title: text, assistant } = /** @type {CustomEvent} */ (event).detail;
  history.replaceState(null, "", `#${new URLSearchParams({ a: assistant, c: id })}`);
  list.current = id;
  title(text);
  void list.load();
});
chat.addEventListener("groundhook:why", (event) => {
  const { turn, marker, messages } = /** @type {CustomEvent} */ (event).detail;
  void why.open(turn, marker, messages);
});
chat.addEventListener("groundhook:error", (event) => {
  const { status, message } = /** @type {CustomEvent} */ (event).detail;
  if (status === 401) void signIn(message).then(start).then(() => chat.start());
});

const to = await takeFragment();
try {
  await identify();
  // A source to which a link led before the person had signed in.
  if (to.startsWith("/api/sources/")) location.replace(to);
  else await start();
} catch (error) {
  fail(error);
}

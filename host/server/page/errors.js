// @ts-check
/** What errors say in the reader's language: the common codes of the server and of turns. In English,
 * and for other codes, it is what the server says, which is more exact. */

import { LANGUAGE, t } from "./words.js";

/** @type {Record<string, string>} */
const SAID = {
  unauthenticated: t("Please sign in with a valid key or token."),
  needs_user: t("Chats belong to a person, and this key has none."),
  wrong_origin: t("This page may not use the server."),
  wrong_host: t("This page may not use the server."),
  chat_busy: t("An answer of this chat is still under way."),
  already_decided: t("This was decided already."),
  too_large: t("What you sent is too large."),
  rate_limited: t("Too many requests in a short time. Please try again later."),
  internal: t("Something went wrong on the server."),
  config: t("The assistant cannot be used at the moment."),
  storage: t("Stored data cannot be used at the moment."),
  full: t("The server is busy. Please try again in a moment."),
  draining: t("The server is about to stop. Please try again in a moment."),
  unknown_name: t("This does not exist, or it is not yours."),
  not_permitted: t("You may not do this."),
  model_unreachable: t("The language model cannot be reached."),
  model_refused: t("The language model refused the request."),
  model_stalled: t("The language model stopped answering."),
  model_truncated: t("The answer broke off."),
  model_context_exceeded: t("The conversation is too long for the language model."),
  turn_timeout: t("The answer took too long."),
  host_closed: t("The server stopped while it answered."),
  model_not_configured: t("The assistant cannot be used at the moment."),
  turn_lost: t("The server stopped while it answered."),
};

/**
 * Return the words of an error.
 * @param {string} code
 * @param {string} message what the server says
 */
export function errorWords(code, message) {
  return LANGUAGE === "en" || !Object.hasOwn(SAID, code) ? message : SAID[code];
}

// @ts-check
/** A turn as the page knows it: made of the events of its stream, or of a stored message. */

import { filesOf } from "./files.js";

/** @typedef {import("./types.d.ts").Turn} Turn */
/** @typedef {import("./types.d.ts").Search} Search */

/**
 * Return a turn that has just been asked.
 * @param {string} question
 * @param {import("./types.d.ts").Attached[]} [files]
 * @returns {Turn}
 */
export function newTurn(question, files = []) {
  return {
    id: "",
    resume: "",
    questionId: "",
    messageId: "",
    question,
    files,
    questionSiblings: [],
    siblings: [],
    state: "running",
    searches: [],
    citations: new Map(),
    blocks: [],
    unchanged: 0,
    reasoning: "",
    tools: [],
    messages: [],
    pending: [],
    decision: false,
    troubles: [],
    warnings: [],
    end: null,
    feedback: null,
    now: 0,
  };
}

/**
 * Return the text of a question, which may have parts.
 * @param {any} content
 */
export function plainText(content) {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part) => (part?.type === "text" ? part.text : "")).join("");
}

/**
 * Return the turns of the messages of a branch, the first one first.
 * @param {any[]} messages
 */
export function turnsOf(messages) {
  /** @type {Turn[]} */
  const turns = [];
  for (const message of messages) {
    if (message.role === "user") {
      const turn = newTurn(plainText(message.content), filesOf(message.content));
      turn.state = "broken";
      turn.questionId = message.id;
      turn.decision = (message.decisions ?? []).length > 0;
      turn.questionSiblings = message.siblings ?? [];
      turns.push(turn);
      continue;
    }
    let turn = turns.at(-1);
    if (!turn || turn.messageId) turns.push((turn = newTurn("")));
    fill(turn, message);
  }
  return turns;
}

/**
 * Set what a stored answer says of its turn.
 * @param {Turn} turn
 * @param {any} message
 */
export function fill(turn, message) {
  const answer = message.answer ?? {};
  Object.assign(turn, {
    id: answer.turn_id ?? "",
    messageId: message.id,
    siblings: message.siblings ?? [],
    state: answer.complete ? "done" : "broken",
    searches: (answer.searches ?? []).map((/** @type {any} */ each) => ({ ...each, began: 0 })),
    citations: new Map((answer.citations ?? []).map((/** @type {any} */ each) => [each.marker, each])),
    blocks: message.blocks ?? [],
    unchanged: 0,
    tools: answer.tools ?? [],
    messages: answer.messages ?? [],
    pending: answer.pending ?? [],
    troubles: answer.errors ?? [],
    warnings: answer.warnings ?? [],
    end: answer.complete ? { ...answer } : null,
    feedback: message.feedback,
  });
}

/**
 * Change a turn by one more event.
 * @param {Turn} turn
 * @param {any} event
 */
export function step(turn, event) {
  turn.now = event.at_ms ?? turn.now;
  turn.state = turn.end ? "done" : "running";
  switch (event.type) {
    case "stream_start":
      if (!turn.id || turn.id === event.turn_id) turn.messageId ||= event.message_id;
      break;
    case "search_start":
      turn.searches.push({
        ...event, began: event.at_ms, total: 0, duration_ms: 0, error: null, provider: "",
        complete: false, items: [],
      });
      break;
    case "search_result":
      search(turn, event)?.items.push(event.item);
      break;
    case "search_complete": {
      const found = search(turn, event);
      if (found) Object.assign(found, event, { complete: true });
      break;
    }
    case "reasoning":
      turn.reasoning += event.delta;
      break;
    case "citation":
      if (!turn.citations.has(event.marker)) turn.citations.set(event.marker, event);
      break;
    case "blocks":
      turn.unchanged = Math.min(turn.unchanged, event.from);
      turn.blocks.splice(event.from, Infinity, ...event.blocks);
      break;
    case "message":
      changeMessage(turn, event);
      break;
    case "tool_start":
      turn.tools.push({ ...event, result: null, error: null, complete: false, progress: "" });
      break;
    case "tool_progress": {
      const tool = turn.tools.find((each) => each.call_id === event.call_id);
      if (tool) tool.progress = event.message;
      break;
    }
    case "tool_result": {
      const tool = turn.tools.find((each) => each.call_id === event.call_id && !each.complete);
      if (tool) Object.assign(tool, event, { complete: true });
      break;
    }
    case "approval_required":
      turn.pending.push(event);
      break;
    case "warning":
      turn.warnings.push(event);
      break;
    case "error":
      turn.troubles.push(event);
      break;
    case "stream_end":
      turn.end = event;
      turn.state = "done";
      judge(turn, event.citations ?? []);
      break;
  }
}

/**
 * Add what the end of a turn says of the sentences that cite a source.
 * @param {Turn} turn
 * @param {import("./types.d.ts").Citation[]} ended
 */
function judge(turn, ended) {
  for (const { marker, missing = [], verified = [] } of ended) {
    const citation = turn.citations.get(marker);
    if (!citation || missing.length + verified.length === 0) continue;
    turn.citations.set(marker, { ...citation, missing, verified });
    turn.unchanged = 0; // the chips are made anew
  }
}

/**
 * @param {Turn} turn
 * @param {any} event
 */
function search(turn, event) {
  return turn.searches.find((each) => each.search_id === event.search_id);
}

/**
 * Change a message of a hook as its action says (docs/events.md).
 * @param {Turn} turn
 * @param {any} event
 */
function changeMessage(turn, event) {
  const { action, message_id: id, path, message: given } = event;
  const found = turn.messages.find((each) => each.message_id === id);
  if (action === "send" || (action === "replace" && !found)) {
    turn.messages.push({ message_id: id, message: given, ended: !event.streaming });
    return;
  }
  if (!found) return;
  if (action === "end") found.ended = true;
  else if (action === "replace") found.message = given;
  else found.message = changed(found.message, path ? path.split(".") : [], action, given);
}

/**
 * Return a value with the one at a path appended to, merged or set.
 * @param {any} value
 * @param {string[]} path
 * @param {string} action
 * @param {any} given
 * @returns {any}
 */
function changed(value, path, action, given) {
  const [key, ...more] = path;
  if (key !== undefined) {
    const copy = Array.isArray(value) ? [...value] : { ...value };
    // A name of JavaScript's own would change every object.
    if (key !== "__proto__") copy[key] = changed(copy[key], more, action, given);
    return copy;
  }
  if (action === "append") {
    if (Array.isArray(value)) return [...value, ...(Array.isArray(given) ? given : [given])];
    return `${value ?? ""}${given}`;
  }
  return action === "merge" ? { ...value, ...given } : given;
}

/**
 * Return the worst certainty of the searches whose items the answer cites, or what the turn says.
 * @param {Turn} turn
 * @returns {string}
 */
export function certainty(turn) {
  if (turn.end?.certainty) return turn.end.certainty;
  const cited = new Set([...turn.citations.values()].map((each) => each.item?.citation_id));
  const said = turn.searches
    .filter((each) => each.items.some((item) => cited.has(item.citation_id)))
    .map((each) => each.certainty);
  return ["sure", "partial", "none"].find((each) => said.includes(each)) ?? "";
}

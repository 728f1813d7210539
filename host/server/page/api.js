// @ts-check
/** The server: requests with JSON, and the stream of a turn, which goes on after a break. */

import { errorWords } from "./errors.js";
import { t } from "./words.js";

/** An error that the server answered, or that there was none to answer (`status` 0). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {Record<string, any>} [more]
   */
  constructor(status, code, detail, more = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.more = more;
  }
}

/** Events of a turn that the page reads. The text comes as blocks. */
const EVENTS = [
  "stream_start", "search_start", "search_result", "search_complete", "reasoning", "citation",
  "message", "tool_start", "tool_progress", "tool_result", "approval_required", "warning", "error", "stream_end",
].join(",");
const QUERY = `view=blocks&events=${EVENTS}`;
const PAUSES_S = [0.3, 0.6, 1, 2, 4, 8, 8, 8, 15, 15];

export class Server {
  /**
   * @param {string} base address of the server; empty: that of this page
   * @param {() => string} token what signs in; empty: the cookie of the session
   */
  constructor(base, token) {
    this.base = base.replace(/\/+$/, "");
    this.token = token;
  }

  /** @param {string} path */
  address(path) {
    return new URL(this.base + path, location.href).href;
  }

  /**
   * Send a request, with a form or else JSON; return its answer. Throws Problem.
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options]
   */
  async send(method, path, { body, headers = {}, signal } = {}) {
    const token = this.token();
    /** @type {Response} */
    let answer;
    try {
      answer = await fetch(this.address(path), {
        method,
        signal,
        credentials: this.base ? "omit" : "same-origin",
        headers: {
          accept: "application/json",
          ...(body === undefined || body instanceof FormData ? {} : { "content-type": "application/json" }),
          ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...headers,
        },
        body: body === undefined || body instanceof FormData ? body : JSON.stringify(body),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem(0, "unreachable", t("The server cannot be reached."));
    }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    throw new Problem(
      answer.status,
      String(told.code ?? "internal"),
      told.code ? errorWords(String(told.code), String(told.detail)) : t("The server answered {status}.", { status: answer.status }),
      told,
    );
  }

  /**
   * Send a request; return the JSON of its answer, null without one. Throws Problem.
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @returns {Promise<any>}
   */
  async json(method, path, body) {
    const answer = await this.send(method, path, { body });
    return answer.status === 204 ? null : answer.json();
  }

  /**
   * Begin a turn and follow it to its end. The same key makes a request that is sent again, since
   * its answer was lost, the same turn.
   * @param {string} path
   * @param {unknown} body
   * @param {Following} following
   */
  async ask(path, body, following) {
    // Not `randomUUID`, which pages that are reached by http from another machine lack.
    const key = [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("-");
    const answer = await this.again(following, () =>
      this.send("POST", `${path}?${QUERY}`, {
        body,
        signal: following.signal,
        headers: { accept: "text/event-stream", "idempotency-key": key },
      }),
    );
    const turn = answer.headers.get("x-groundhook-turn") ?? "";
    const resume = answer.headers.get("x-groundhook-resume") ?? "";
    following.onturn(turn, resume);
    await this.#follow(answer, turn, resume, following);
  }

  /**
   * Follow a turn that is under way, from its beginning.
   * @param {string} turn
   * @param {string} resume
   * @param {Following} following
   */
  async attach(turn, resume, following) {
    following.onturn(turn, resume);
    await this.#follow(null, turn, resume, following);
  }

  /**
   * @param {Response | null} answer
   * @param {string} turn
   * @param {string} resume
   * @param {Following} following
   */
  async #follow(answer, turn, resume, following) {
    const state = { last: 0, ended: false };
    const headers = () => ({
      accept: "text/event-stream",
      "last-event-id": String(state.last),
      ...(resume ? { "x-groundhook-resume": resume } : {}),
    });
    const path = `/api/turns/${encodeURIComponent(turn)}/events?${QUERY}`;
    for (let tries = 0; ; tries += 1) {
      try {
        answer ??= await this.again(following, () =>
          this.send("GET", path, { headers: headers(), signal: following.signal }),
        );
        if (answer.status === 204) return; // it was read to its end
        const before = state.last;
        await readEvents(answer, (event, id) => {
          if (id) state.last = id;
          if (event.type === "stream_end") state.ended = true;
          following.onevent(event);
        });
        if (state.last > before) tries = 0;
      } catch (error) {
        if (following.signal.aborted || error instanceof Problem) throw error;
      }
      if (state.ended) return;
      answer = null;
      if (tries >= PAUSES_S.length) throw new Problem(0, "unreachable", t("The connection was lost."));
      following.onwait();
      await pause(PAUSES_S[tries], following.signal);
    }
  }

  /**
   * Send a request until the server can be reached.
   * @param {Following} following
   * @param {() => Promise<Response>} send
   */
  async again(following, send) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await send();
      } catch (error) {
        const lost = error instanceof Problem && (error.status === 0 || error.code === "draining");
        if (!lost || tries >= PAUSES_S.length || following.signal.aborted) throw error;
        following.onwait();
        await pause(PAUSES_S[tries], following.signal);
      }
    }
  }
}

/**
 * @typedef {object} Following what is told of a turn that is followed
 * @property {AbortSignal} signal
 * @property {(turn: string, resume: string) => void} onturn
 * @property {(event: any) => void} onevent
 * @property {() => void} onwait the connection is lost, and tried again
 */

/**
 * Read the events of an answer.
 * @param {Response} answer
 * @param {(event: any, id: number) => void} onevent
 */
export async function readEvents(answer, onevent) {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      let id = 0;
      let data = "";
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) id = Number(line.slice(4));
        else if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (data) onevent(JSON.parse(data), id);
    }
  }
}

/**
 * Read the lines of JSON of an answer. What `take` throws ends it.
 * @param {Response} answer
 * @param {(line: any) => void} take
 */
export async function readLines(answer, take) {
  const reader = /** @type {ReadableStream} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts.filter(Boolean)) take(JSON.parse(part));
  }
}

/**
 * @param {number} seconds
 * @param {AbortSignal} signal
 */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

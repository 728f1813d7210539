// The part of the prelude that few runs need: descriptions of errors, the log, timers, watched
// promises, the globals that the bare engine lacks, and errors for names that this host does not
// offer. A function of the builtins that prelude.js took before any hook ran, and of a table;
// loaded when it is first used.
(function (builtins, table) {
  "use strict";
  const {
    Error,
    TypeError,
    Promise,
    String,
    stringify,
    slice,
    defineProperty,
    getPrototypeOf,
    keys,
    apply,
    then,
    resolved,
  } = builtins;
  const { now, evaluate, call, ask, includes, nameOfKind } = builtins;

  // ---- values as text

  const LONGEST = 2 * table.longest_log;
  const MOST_REASONS = 3; // errors of an AggregateError in a message

  function text(read) {
    try {
      const value = read();
      const whole = value === undefined || value === null ? "" : String(value);
      return whole.length > LONGEST ? slice(whole, 0, LONGEST) + "..." : whole;
    } catch {
      return "";
    }
  }

  // A property as text, whatever its getter does.
  const readText = (value, property) => text(() => value[property]);

  function describe(error) {
    if (error === undefined || error === null) {
      const message =
        String(error) + ', which is not an error (throw new Error("…") has a message and a place)';
      return stringify({ __proto__: null, name: "", message, stack: "", code: "" });
    }
    if ((typeof error !== "object" || error === null) && typeof error !== "function") {
      return stringify({
        __proto__: null,
        name: "",
        message: text(() => error),
        stack: "",
        code: "",
      });
    }
    const own = explained(readText(error, "message") || text(() => stringify(error)));
    const message = own + text(() => reasons(error));
    return stringify({
      __proto__: null,
      name: readText(error, "name"),
      message,
      stack: readText(error, "stack"),
      code: readText(error, "code"),
    });
  }

  // Return why an error occurred, as a part of a message: its cause, or the errors of an
  // AggregateError.
  function reasons(error) {
    const { cause, errors } = error;
    if (cause !== undefined && cause !== null) return " (cause: " + reason(cause) + ")";
    let all = "";
    for (let i = 0; i < errors?.length && i < MOST_REASONS; i++)
      all += (all === "" ? " (" : "; ") + reason(errors[i]);
    return all === "" ? "" : all + ")";
  }

  // Return a value for the log: a primitive, or a text that describes it.
  function toLogValue(value) {
    if (typeof value === "string")
      return value.length > table.longest_log ? slice(value, 0, table.longest_log) + "..." : value;
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") return value - value === 0 ? value : String(value);
    if (typeof value === "function") return "[Function " + readText(value, "name") + "]";
    if (typeof value !== "object") return String(value);
    return toLogValue(readText(value, "stack") || text(() => stringify(value)) || "[object]");
  }

  // Return the message of a thrown value.
  const reason = (error) =>
    (typeof error === "object" && error !== null && readText(error, "message")) ||
    toLogValue(error);

  function print(name, args) {
    const texts = [];
    for (let i = 0; i < args.length && i < table.most_log; i++) {
      defineProperty(texts, i, {
        __proto__: null,
        value: toLogValue(args[i]),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    call(name, texts);
  }

  function makeError({ name, message, code }) {
    const error = name === "TypeError" ? new TypeError(message) : new Error(message);
    if (code)
      defineProperty(error, "code", {
        __proto__: null,
        value: code,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    return error;
  }

  // ---- values that JSON lacks

  const REMEDIES = {
    __proto__: null,
    Error: "String(error) is its text",
    Map: "Object.fromEntries(map) makes an object of it",
    Promise: "await it",
    Set: "[...set] makes a list of it",
  };

  // Return the kind of an object that holds something and whose JSON is {}: a Map, a Promise, an
  // Error; "" for any other value.
  function emptied(value) {
    if (typeof value !== "object" || value === null) return "";
    const kind = slice(nameOfKind(value), 8, -1);
    return kind !== "Object" && kind !== "Array" && stringify(value) === "{}" ? kind : "";
  }

  // JSON.stringify has written null or {} somewhere: report the first value of which it lost
  // something, with its path. `of` is the call whose arguments these are, "" for the value that a
  // hook returned.
  function reportLost(value, of) {
    let inner,
      path = "",
      was = "",
      becomes = "",
      instead = "",
      more = 0;
    const look = function (key, here) {
      while (inner !== undefined && inner.holder !== this) inner = inner.around;
      const at =
        inner === undefined
          ? ""
          : inner.path + (+key >= 0 ? "[" + key + "]" : (inner.path === "" ? "" : ".") + key);
      if (typeof here === "object" && here !== null)
        inner = { __proto__: null, holder: here, path: at, around: inner };
      const kind = emptied(here);
      let found = kind === "" ? "" : "a value of type " + kind;
      if (typeof here === "number" && here - here !== 0) found = String(here);
      else if (here === null && this[key] !== null)
        found = "an object whose JSON is null (an invalid date?)";
      if (found !== "" && was !== "") more++;
      else if (found !== "") {
        path = at.length > 200 ? slice(at, 0, 200) + "..." : at;
        was = found;
        becomes = kind === "" ? "null" : "{}";
        instead = REMEDIES[kind] ?? "";
      }
      return here;
    };
    try {
      stringify(value, look);
    } catch {
      return;
    }
    if (was !== "") {
      const stack = readText(new Error(), "stack");
      const report = { __proto__: null, of, path, was, becomes, instead, more, stack };
      ask("!lost", stringify(report));
    }
  }

  // ---- names that are not offered

  const absent = (name, instead) => new Error(name + " is not offered by this host: " + instead);
  const { missing_on_ctx, missing_functions, missing_objects } = table;

  // What hooks have read of `ctx` that is not there: the last entry first, {name, key, why, next};
  // and the entry that was read last.
  let lastAbsent, lastRead;

  // A part of `ctx` or of a node of the trace is undefined, so that a hook can look whether it is
  // there: the host warns, once for each name. Any other name throws.
  function missing(of, path, key) {
    const name = path + "." + key;
    const onCtx = path === "ctx" || slice(path, 0, 4) === "ctx.";
    const instead = onCtx ? missing_on_ctx[slice(name, 4)] : undefined;
    let known = "";
    const names = keys(of);
    for (let i = 0; i < names.length; i++) known += (known === "" ? "" : ", ") + names[i];
    const error = absent(name, typeof instead === "string" ? instead : "there are " + known);
    if (!onCtx && path !== "node") throw error;
    for (lastRead = lastAbsent; lastRead !== undefined; lastRead = lastRead.next)
      if (lastRead.name === name) return undefined;
    lastRead = lastAbsent = { __proto__: null, name, key, why: error.message, next: lastAbsent };
    ask("!absent", describe(error));
    return undefined;
  }

  // Return the message of an error, with why the part is missing that a hook has called or read on.
  function explained(message) {
    if (slice(message, 0, 4) === "ctx." && includes(message, ").then is not a function"))
      return message + "; calls of the host return their value, not a promise";
    const read = slice(message, 0, 35) === "Cannot read properties of undefined";
    for (let entry = lastAbsent; entry !== undefined; entry = entry.next) {
      if (includes(message, entry.why)) return message;
      const called =
        includes(message, "." + entry.key + " is not a ") || includes(message, entry.key + "(...)");
      if (called || (entry === lastRead && read)) return message + "; " + entry.why;
    }
    return message;
  }

  // Replace the message of an error that a hook has caught by the explained one.
  function completeMessage(error) {
    if (lastAbsent === undefined || typeof error !== "object" || error === null) return;
    const message = readText(error, "message");
    const value = explained(message);
    if (value !== message)
      defineProperty(error, "message", {
        __proto__: null,
        value,
        writable: true,
        configurable: true,
      });
  }

  function cannotImport(name) {
    throw new Error(
      "cannot import " +
        text(() => name) +
        ": only files of the package, named by a literal, can be imported",
    );
  }

  function Exception(message, code) {
    const error = new Error(text(() => message));
    error.name = "Exception";
    error.code = code;
    return error;
  }

  let loadedWeb;
  const webGlobals = () =>
    (loadedWeb ??= evaluate(ask("!web_globals", ""))({ TextEncoder, TextDecoder }));
  const IN_WEB_GLOBALS = {
    __proto__: null,
    URL: true,
    URLSearchParams: true,
    structuredClone: true,
  };

  // Return the value of a global by its name in the table.
  function find(name) {
    const there = offered[name];
    if (there !== undefined) return there;
    if (IN_WEB_GLOBALS[name]) return webGlobals()[name];
    const instead = missing_functions[name];
    if (instead !== undefined)
      return function () {
        throw absent(name, instead);
      };
    return new Proxy(
      {},
      {
        __proto__: null,
        get(_, key) {
          if (typeof key === "symbol") return undefined;
          throw absent(name + "." + key, missing_objects[name]);
        },
      },
    );
  }

  // ---- timers

  // Timers as a linked list in the order in which they are due. They fire while the host waits for
  // a hook's promise, each in an evaluation of its own. `clock` is their time, which never goes
  // back.
  let first,
    firing,
    clock = 0,
    timers = 0,
    idle = 0;

  function readClock() {
    const at = now();
    if (at > clock) clock = at;
    return clock;
  }

  function insert(timer) {
    if (first === undefined || timer.due < first.due) {
      timer.next = first;
      first = timer;
      return;
    }
    let before = first;
    while (before.next !== undefined && before.next.due <= timer.due) before = before.next;
    timer.next = before.next;
    before.next = timer;
  }

  const timed =
    (name, repeats) =>
    (callback, delay, ...args) => {
      if (typeof callback !== "function")
        throw new TypeError(
          name + ": the first argument must be a function, not " + typeof callback,
        );
      const ms = +delay;
      const wait = ms >= 1 ? (ms < 0x7fffffff ? ms : 0x7fffffff) : 1;
      const timer = {
        __proto__: null,
        id: ++timers,
        due: readClock() + wait,
        every: repeats ? wait : 0,
        callback,
        args,
        next: undefined,
      };
      insert(timer);
      return timer.id;
    };

  function clearTimer(id) {
    if (firing !== undefined && firing.id === id) firing.every = 0;
    if (first === undefined) return;
    if (first.id === id) {
      first = first.next;
      return;
    }
    for (let before = first; before.next !== undefined; before = before.next) {
      if (before.next.id === id) {
        before.next = before.next.next;
        return;
      }
    }
  }

  function dropTimers() {
    first = undefined;
    idle = 0;
    if (firing !== undefined) firing.every = 0;
  }

  function guarded(where, callback, args) {
    try {
      builtins.watched(apply(callback, undefined, args));
    } catch (error) {
      ask("!uncaught", where + "\n" + describe(error));
    }
  }

  // A promise is pending and the microtasks have run: fire the next timer. Without a timer nothing
  // is left that could settle the promise, unless V8 itself is at work (it compiles WebAssembly on
  // other threads): wait for ten short moments.
  function fireTimer() {
    const timer = first;
    if (timer === undefined) {
      if (idle++ === 10) return "&";
      ask("!wait", "5");
      return "~";
    }
    idle = 0;
    const wait = timer.due - readClock();
    if (wait > 0) ask("!wait", String(wait));
    if (timer.due > clock) clock = timer.due;
    first = timer.next;
    firing = timer;
    guarded("timer", timer.callback, timer.args);
    firing = undefined;
    if (timer.every > 0) {
      timer.due = readClock() + timer.every;
      insert(timer);
    }
    return "~";
  }

  // ---- promises that are not awaited

  // ECMAScript reads the `constructor` of a promise when something begins to wait for it: `await`,
  // `then`, `Promise.all` and the like. A promise that was rejected without that, by the time the
  // hook has ended, is reported.
  const MOST_REPORTED = 10;
  let firstFailed, lastFailed;

  function watch(promise) {
    const entry = { __proto__: null, awaited: false, error: undefined, next: undefined };
    let species = Promise; // while `then` below reads it: a subclass must not see that
    const constructor = {
      __proto__: null,
      get() {
        entry.awaited = true;
        return species;
      },
    };
    if (!defineProperty(promise, "constructor", constructor)) return promise; // already watched
    then(promise, undefined, (error) => {
      entry.error = error;
      if (firstFailed === undefined) firstFailed = entry;
      else lastFailed.next = entry;
      lastFailed = entry;
    });
    entry.awaited = false;
    species = getPrototypeOf(promise).constructor;
    return promise;
  }

  function reportUnawaited() {
    let count = 0;
    for (let entry = firstFailed; entry !== undefined; entry = entry.next) {
      if (!entry.awaited && count++ < MOST_REPORTED)
        ask("!uncaught", "unawaited\n" + describe(entry.error));
    }
    firstFailed = lastFailed = undefined;
    if (count > MOST_REPORTED)
      ask(
        "!uncaught",
        "unawaited\n" +
          describe({ __proto__: null, message: count - MOST_REPORTED + " more errors" }),
      );
  }

  function queueMicrotask(callback) {
    if (typeof callback !== "function")
      throw new TypeError(
        "queueMicrotask: the argument must be a function, not " + typeof callback,
      );
    builtins.watched(then(resolved(), () => guarded("microtask", callback, [])));
  }

  // ---- text encodings, UTF-8 only

  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  function btoa(data) {
    const text = String(data);
    let out = "";
    for (let i = 0; i < text.length; i += 3) {
      let bits = 0;
      for (let j = i; j < i + 3; j++) {
        const code = j < text.length ? text.charCodeAt(j) : 0;
        if (code > 255) throw new TypeError("btoa: only characters up to U+00FF can be encoded");
        bits = (bits << 8) | code;
      }
      out += ALPHABET[bits >> 18] + ALPHABET[(bits >> 12) & 63];
      out +=
        (i + 1 < text.length ? ALPHABET[(bits >> 6) & 63] : "=") +
        (i + 2 < text.length ? ALPHABET[bits & 63] : "=");
    }
    return out;
  }

  function atob(data) {
    let text = String(data).replace(/[ \t\n\f\r]/g, "");
    if (text.length % 4 === 0) text = text.replace(/==?$/, "");
    let out = "",
      bits = 0;
    for (let i = 0; i < text.length; i++) {
      const digit = ALPHABET.indexOf(text[i]);
      if (digit < 0) throw new TypeError("atob: this is not base64");
      bits = ((bits << 6) | digit) & 0xffffff;
      if (i % 4 !== 0) out += String.fromCharCode((bits >> (6 - 2 * (i % 4))) & 255);
    }
    if (text.length % 4 === 1) throw new TypeError("atob: this is not base64");
    return out;
  }

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(data) {
      const text = (data === undefined ? "" : String(data)).toWellFormed();
      const bytes = [];
      for (const char of text) {
        const code = char.codePointAt(0);
        if (code < 0x80) {
          bytes.push(code);
          continue;
        }
        const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        bytes.push(((0xff00 >> (more + 1)) & 0xff) | (code >> (6 * more)));
        for (let shift = 6 * (more - 1); shift >= 0; shift -= 6)
          bytes.push(0x80 | ((code >> shift) & 63));
      }
      return new Uint8Array(bytes);
    }
  }

  class TextDecoder {
    constructor(label) {
      const name = label === undefined ? "utf-8" : String(label).toLowerCase();
      if (name !== "utf-8" && name !== "utf8")
        throw new TypeError("TextDecoder: only utf-8 is offered, not " + name);
    }
    get encoding() {
      return "utf-8";
    }
    decode(data) {
      if (data === undefined) return "";
      const bytes = ArrayBuffer.isView(data)
        ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
        : new Uint8Array(data);
      let out = "",
        i = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
      while (i < bytes.length) {
        const first = bytes[i++];
        if (first < 0x80) {
          out += String.fromCharCode(first);
          continue;
        }
        const more =
          first >= 0xc2 && first < 0xe0
            ? 1
            : first >= 0xe0 && first < 0xf0
              ? 2
              : first >= 0xf0 && first < 0xf5
                ? 3
                : 0;
        // The second byte's range keeps out overlong forms, surrogates and what lies beyond
        // U+10FFFF.
        let least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
        let most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
        let code = first & (0x3f >> more),
          read = 0;
        while (read < more && bytes[i] >= least && bytes[i] <= most) {
          code = (code << 6) | (bytes[i++] & 63);
          read++;
          least = 0x80;
          most = 0xbf;
        }
        out += more === 0 || read < more ? "\ufffd" : String.fromCodePoint(code);
      }
      return out;
    }
  }

  const offered = {
    __proto__: null,
    Exception,
    btoa,
    atob,
    TextEncoder,
    TextDecoder,
    queueMicrotask,
    setTimeout: timed("setTimeout", false),
    setInterval: timed("setInterval", true),
    clearTimeout: clearTimer,
    clearInterval: clearTimer,
    Process: (...args) => call("Process", args),
    $L: (...args) => call("$L", args),
  };
  // ---- the same on every run

  // Fix the time of day at `now` (milliseconds), and draw random numbers by Marsaglia's xorshift32
  // from `seed`.
  function fix({ now, seed }) {
    const fixed = (target, name, value) =>
      defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true });
    if (now !== null) {
      const { Date } = globalThis;
      const Fixed = new Proxy(Date, {
        __proto__: null,
        apply: () => new Date(now).toString(),
        construct: (target, args, newTarget) =>
          Reflect.construct(target, args.length === 0 ? [now] : args, newTarget),
        get: (target, key) => (key === "now" ? () => now : target[key]),
      });
      fixed(Date.prototype, "constructor", Fixed);
      fixed(globalThis, "Date", Fixed);
    }
    if (seed !== null) {
      let state = (Math.imul(seed, 0x9e3779b1) ^ 0x2545f491) | 0 || 1;
      fixed(Math, "random", () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) / 0x100000000;
      });
    }
  }

  const { most_log } = table;
  return {
    __proto__: null,
    most_log,
    readText,
    fix,
    describe,
    toLogValue,
    reason,
    print,
    makeError,
    missing,
    completeMessage,
    cannotImport,
    find,
    fireTimer,
    dropTimers,
    reportLost,
    watch,
    reportUnawaited,
  };
})

// What test files have beside the language: `test`, `describe`, `expect` and `turn`. A function of what prelude.js took from the
// language; its value holds the two functions that the host calls as it calls hooks: `Tests` lists them, `Test` runs one.
(function (taken) {
  "use strict";
  const { call } = taken;
  const RESULT = Symbol("answer of turn()");
  const tests = [];
  const groups = [];

  // ------------------------------------------------------------------------------------------------ values in words
  const isObject = (value) => typeof value === "object" && value !== null;

  function plain(_, value) {
    if (value instanceof RegExp || typeof value === "bigint" || typeof value === "symbol") return String(value);
    if (typeof value === "function") return `[Function ${value.name}]`;
    if (typeof value === "number" && !Number.isFinite(value)) return String(value);
    return value === undefined ? "[undefined]" : value;
  }

  // As JSON, on as many lines as it needs.
  function shown(value) {
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (!isObject(value) && typeof value !== "string") return String(value);
    if (value instanceof RegExp) return String(value);
    try {
      const text = JSON.stringify(value, plain);
      return text.length > 80 ? JSON.stringify(value, plain, 2) : text;
    } catch {
      return String(value);
    }
  }

  // ------------------------------------------------------------------------------------------------ comparing
  function equal(a, b) {
    if (Object.is(a, b)) return true;
    if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
    if (a instanceof RegExp || b instanceof RegExp) return String(a) === String(b);
    if (a instanceof Map && b instanceof Map) return equal([...a], [...b]);
    if (a instanceof Set && b instanceof Set) return equal([...a], [...b]);
    const there = (of) => Object.keys(of).filter((key) => of[key] !== undefined);
    const keys = there(a);
    return keys.length === there(b).length && keys.every((key) => equal(a[key], b[key]));
  }

  // Whether `value` has what `wanted` says: a regular expression is searched for, an object's own keys must fit and others may
  // be there, a list must fit entry by entry.
  function fits(value, wanted) {
    if (wanted instanceof RegExp) return typeof value === "string" && value.search(wanted) >= 0;
    if (Array.isArray(wanted)) {
      return Array.isArray(value) && value.length === wanted.length && wanted.every((entry, at) => fits(value[at], entry));
    }
    if (isObject(wanted) && isObject(value) && Object.getPrototypeOf(wanted) === Object.prototype) {
      return Object.keys(wanted).every((key) => fits(value[key], wanted[key]));
    }
    return equal(value, wanted);
  }

  // Whether some text in a value fits: a regular expression finds it, or it contains the text.
  function says(value, wanted) {
    if (isObject(value)) return Object.values(value).some((entry) => says(entry, wanted));
    if (value === null || value === undefined) return false;
    return wanted instanceof RegExp ? String(value).search(wanted) >= 0 : String(value).includes(wanted);
  }

  const picks = (wanted) => typeof wanted === "string" || wanted instanceof RegExp
    ? (value) => says(value, wanted)
    : (value) => wanted === undefined || fits(value, wanted);

  // ------------------------------------------------------------------------------------------------ expectations
  class ExpectationFailed extends Error {
    constructor(message, expected, actual) {
      super(message);
      this.name = "ExpectationFailed";
      this.expected = expected;
      this.actual = actual;
    }
  }

  function thrownBy(value) {
    if (typeof value !== "function") throw new TypeError("expect(…).toThrow needs a function, such as () => parse(text)");
    try {
      value();
    } catch (error) {
      return { error };
    }
    return undefined;
  }

  function answered(value, name) {
    if (!isObject(value) || value[RESULT] !== true) throw new TypeError(`expect(…).${name} needs what turn() returned`);
    return value;
  }

  // Each says of (actual, …arguments) whether it holds, what was expected in words, and what was there instead.
  const compared = (words, holds) => (actual, wanted) => ({ holds: holds(actual, wanted), words, expected: shown(wanted), actual: shown(actual) });
  const judged = (words, holds) => (actual) => ({ holds: holds(actual), words, expected: "", actual: shown(actual) });
  const MATCHERS = {
    toBe: compared("to be", Object.is),
    toEqual: compared("to equal", equal),
    toMatchObject: compared("to have", fits),
    toMatch: compared("to match", says),
    toContain: compared("to contain", (actual, wanted) =>
      typeof actual === "string" ? actual.includes(wanted) : Array.from(actual ?? []).some((entry) => equal(entry, wanted))),
    toHaveLength: (actual, wanted) => ({
      holds: actual?.length === wanted, words: "to have the length", expected: shown(wanted), actual: `${actual?.length}: ${shown(actual)}`,
    }),
    toBeGreaterThan: compared("to be greater than", (actual, wanted) => actual > wanted),
    toBeGreaterThanOrEqual: compared("to be at least", (actual, wanted) => actual >= wanted),
    toBeLessThan: compared("to be less than", (actual, wanted) => actual < wanted),
    toBeLessThanOrEqual: compared("to be at most", (actual, wanted) => actual <= wanted),
    toBeTruthy: judged("to be true", Boolean),
    toBeFalsy: judged("to be false", (actual) => !actual),
    toBeNull: judged("to be null", (actual) => actual === null),
    toBeUndefined: judged("to be undefined", (actual) => actual === undefined),
    toBeDefined: judged("to be defined", (actual) => actual !== undefined),
    toThrow(actual, wanted) {
      const thrown = thrownBy(actual);
      const holds = thrown !== undefined && (wanted === undefined || says(thrown.error?.message ?? thrown.error, wanted));
      return { holds, words: "to throw", expected: wanted === undefined ? "" : shown(wanted), actual: thrown === undefined ? "nothing was thrown" : shown(thrown.error) };
    },

    // What a turn did.
    toHaveSearched(answer, type, what) {
      const searches = answered(answer, "toHaveSearched").searches;
      const query = typeof what === "string" || what instanceof RegExp;
      const holds = searches.some((search) => search.type === type && (query ? says(search.query, what) : picks(what)(search)));
      return { holds, words: `to have searched ${type}`, expected: what === undefined ? "" : shown(what), actual: shown(searches.map(brief)) };
    },
    toHaveCited(answer, what) {
      const cited = answered(answer, "toHaveCited").citations.filter((citation) => citation.verdict === "ok");
      return { holds: cited.some(picks(what)), words: "to have cited", expected: what === undefined ? "a source" : shown(what), actual: shown(cited) };
    },
    toHaveSent(answer, what) {
      const { messages } = answered(answer, "toHaveSent");
      return { holds: messages.some(picks(what)), words: "to have sent", expected: what === undefined ? "a message" : shown(what), actual: shown(messages) };
    },
    toHaveReturned(answer, what) {
      const { data } = answered(answer, "toHaveReturned");
      return { holds: data !== null && picks(what)(data), words: "to have returned", expected: what === undefined ? "data" : shown(what), actual: shown(data) };
    },
    toHaveFailed(answer, what) {
      const { error } = answered(answer, "toHaveFailed");
      return { holds: error !== null && picks(what)(error), words: "to have failed", expected: what === undefined ? "" : shown(what), actual: error === null ? "no error" : shown(error) };
    },
  };

  // A search as a failed expectation shows it: without the items' texts.
  const brief = ({ items, ...search }) => ({ ...search, items: items.map((item) => item.title || item.citation_id) });

  function expect(actual) {
    const expectation = {}, not = {};
    for (const [name, matcher] of Object.entries(MATCHERS)) {
      const against = (wanted) => (...args) => {
        const found = matcher(actual, ...args);
        if (found.holds !== wanted) throw new ExpectationFailed(`${wanted ? "" : "not "}${found.words}`, found.expected, found.actual);
      };
      expectation[name] = against(true);
      not[name] = against(false);
    }
    expectation.not = not;
    return expectation;
  }

  // ------------------------------------------------------------------------------------------------ tests
  function declared(name, body, skip) {
    if (typeof name !== "string" || typeof body !== "function") throw new TypeError('test needs a name and a function: test("name", () => {…})');
    tests.push({ name: [...groups, name].join(" › "), body, skip, stack: String(new Error().stack) });
  }

  const test = (name, body) => declared(name, body, false);
  test.skip = (name, body) => declared(name, body, true);

  function describe(name, body) {
    groups.push(String(name));
    try {
      body();
    } finally {
      groups.pop();
    }
  }

  function turn(message, options) {
    const answer = call("turn", options === undefined ? [message] : [message, options]);
    Object.defineProperty(answer, RESULT, { value: true });
    return answer;
  }

  // Turned into an object before it leaves: what was expected goes with it.
  function described(error) {
    const of = isObject(error) ? error : { message: String(error) };
    const told = (value) => (value === undefined || value === null ? "" : String(value));
    return {
      name: told(of.name), message: told(of.message), stack: told(of.stack), code: told(of.code),
      expected: told(of.expected), actual: told(of.actual),
    };
  }

  // null, or what went wrong.
  function Test(_ctx, index) {
    try {
      const value = tests[index].body();
      return isObject(value) && typeof value.then === "function" ? value.then(() => null, described) : null;
    } catch (error) {
      return described(error);
    }
  }

  const Tests = () => tests.map(({ name, skip, stack }) => ({ name, skip, stack }));

  Object.assign(globalThis, { test, describe, expect, turn });
  return { Tests, Test };
})

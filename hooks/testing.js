// The globals of test files: `test`, `describe`, `expect` and `turn`. A function of the builtins
// that prelude.js took. It returns the two functions that the host calls as it calls hooks: `Tests`
// lists the tests, `Test` runs one.
(function (builtins) {
  "use strict";
  const { call } = builtins;
  const RESULT = Symbol("answer of turn()");
  const tests = [];
  const groups = [];

  // ---- values as text

  const isObject = (value) => typeof value === "object" && value !== null;

  function plain(_, value) {
    if (value instanceof RegExp || typeof value === "bigint" || typeof value === "symbol")
      return String(value);
    if (typeof value === "function") return `[Function ${value.name}]`;
    if (typeof value === "number" && !Number.isFinite(value)) return String(value);
    return value === undefined ? "[undefined]" : value;
  }

  // Return a value as JSON, on as many lines as it needs.
  function toText(value) {
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

  // ---- comparing

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

  // Whether `value` matches `wanted`: a regular expression is searched for, the keys of an object
  // must match and others may be there, a list must match entry by entry.
  function matches(value, wanted) {
    if (wanted instanceof RegExp) return typeof value === "string" && value.search(wanted) >= 0;
    if (Array.isArray(wanted)) {
      return (
        Array.isArray(value) &&
        value.length === wanted.length &&
        wanted.every((entry, at) => matches(value[at], entry))
      );
    }
    if (isObject(wanted) && isObject(value) && Object.getPrototypeOf(wanted) === Object.prototype) {
      return Object.keys(wanted).every((key) => matches(value[key], wanted[key]));
    }
    return equal(value, wanted);
  }

  // Whether some text in a value matches: a regular expression finds something, or the text is
  // contained.
  function containsText(value, wanted) {
    if (isObject(value)) return Object.values(value).some((entry) => containsText(entry, wanted));
    if (value === null || value === undefined) return false;
    return wanted instanceof RegExp
      ? String(value).search(wanted) >= 0
      : String(value).includes(wanted);
  }

  const makeMatcher = (wanted) =>
    typeof wanted === "string" || wanted instanceof RegExp
      ? (value) => containsText(value, wanted)
      : (value) => wanted === undefined || matches(value, wanted);

  // ---- expectations

  class ExpectationFailed extends Error {
    constructor(message, expected, actual) {
      super(message);
      this.name = "ExpectationFailed";
      this.expected = expected;
      this.actual = actual;
    }
  }

  function catchThrown(value) {
    if (typeof value !== "function")
      throw new TypeError("expect(…).toThrow needs a function, such as () => parse(text)");
    try {
      value();
    } catch (error) {
      return { error };
    }
    return undefined;
  }

  function requireAnswer(value, name) {
    if (!isObject(value) || value[RESULT] !== true)
      throw new TypeError(`expect(…).${name} needs what turn() returned`);
    return value;
  }

  // Each takes (actual, …arguments) and returns whether it holds, what was expected in words, and
  // the actual value.
  const compare = (words, holds) => (actual, wanted) => ({
    holds: holds(actual, wanted),
    words,
    expected: toText(wanted),
    actual: toText(actual),
  });
  const judge = (words, holds) => (actual) => ({
    holds: holds(actual),
    words,
    expected: "",
    actual: toText(actual),
  });
  const MATCHERS = {
    toBe: compare("to be", Object.is),
    toEqual: compare("to equal", equal),
    toMatchObject: compare("to have", matches),
    toMatch: compare("to match", containsText),
    toContain: compare("to contain", (actual, wanted) =>
      typeof actual === "string"
        ? actual.includes(wanted)
        : Array.from(actual ?? []).some((entry) => equal(entry, wanted)),
    ),
    toHaveLength: (actual, wanted) => ({
      holds: actual?.length === wanted,
      words: "to have the length",
      expected: toText(wanted),
      actual: `${actual?.length}: ${toText(actual)}`,
    }),
    toBeGreaterThan: compare("to be greater than", (actual, wanted) => actual > wanted),
    toBeGreaterThanOrEqual: compare("to be at least", (actual, wanted) => actual >= wanted),
    toBeLessThan: compare("to be less than", (actual, wanted) => actual < wanted),
    toBeLessThanOrEqual: compare("to be at most", (actual, wanted) => actual <= wanted),
    toBeTruthy: judge("to be true", Boolean),
    toBeFalsy: judge("to be false", (actual) => !actual),
    toBeNull: judge("to be null", (actual) => actual === null),
    toBeUndefined: judge("to be undefined", (actual) => actual === undefined),
    toBeDefined: judge("to be defined", (actual) => actual !== undefined),
    toThrow(actual, wanted) {
      const thrown = catchThrown(actual);
      const holds =
        thrown !== undefined &&
        (wanted === undefined || containsText(thrown.error?.message ?? thrown.error, wanted));
      return {
        holds,
        words: "to throw",
        expected: wanted === undefined ? "" : toText(wanted),
        actual: thrown === undefined ? "nothing was thrown" : toText(thrown.error),
      };
    },

    // Expectations of a turn's answer.
    toHaveSearched(answer, type, what) {
      const searches = requireAnswer(answer, "toHaveSearched").searches;
      const query = typeof what === "string" || what instanceof RegExp;
      const holds = searches.some(
        (search) =>
          search.type === type &&
          (query ? containsText(search.query, what) : makeMatcher(what)(search)),
      );
      return {
        holds,
        words: `to have searched ${type}`,
        expected: what === undefined ? "" : toText(what),
        actual: toText(searches.map(brief)),
      };
    },
    toHaveCited(answer, what) {
      const cited = requireAnswer(answer, "toHaveCited").citations.filter(
        (citation) => citation.verdict === "ok",
      );
      return {
        holds: cited.some(makeMatcher(what)),
        words: "to have cited",
        expected: what === undefined ? "a source" : toText(what),
        actual: toText(cited),
      };
    },
    toHaveSent(answer, what) {
      const { messages } = requireAnswer(answer, "toHaveSent");
      return {
        holds: messages.some(makeMatcher(what)),
        words: "to have sent",
        expected: what === undefined ? "a message" : toText(what),
        actual: toText(messages),
      };
    },
    toHaveReturned(answer, what) {
      const { data } = requireAnswer(answer, "toHaveReturned");
      return {
        holds: data !== null && makeMatcher(what)(data),
        words: "to have returned",
        expected: what === undefined ? "data" : toText(what),
        actual: toText(data),
      };
    },
    toHaveFailed(answer, what) {
      const { error } = requireAnswer(answer, "toHaveFailed");
      return {
        holds: error !== null && makeMatcher(what)(error),
        words: "to have failed",
        expected: what === undefined ? "" : toText(what),
        actual: error === null ? "no error" : toText(error),
      };
    },
  };

  // A search as a failed expectation shows it: without the items' texts.
  const brief = ({ items, ...search }) => ({
    ...search,
    items: items.map((item) => item.title || item.citation_id),
  });

  function expect(actual) {
    const expectation = {},
      not = {};
    for (const [name, matcher] of Object.entries(MATCHERS)) {
      const against =
        (wanted) =>
        (...args) => {
          const found = matcher(actual, ...args);
          if (found.holds !== wanted)
            throw new ExpectationFailed(
              `${wanted ? "" : "not "}${found.words}`,
              found.expected,
              found.actual,
            );
        };
      expectation[name] = against(true);
      not[name] = against(false);
    }
    expectation.not = not;
    return expectation;
  }

  // ---- tests

  function declareTest(name, body, skip) {
    if (typeof name !== "string" || typeof body !== "function")
      throw new TypeError('test needs a name and a function: test("name", () => {…})');
    tests.push({
      name: [...groups, name].join(" › "),
      body,
      skip,
      stack: String(new Error().stack),
    });
  }

  const test = (name, body) => declareTest(name, body, false);
  test.skip = (name, body) => declareTest(name, body, true);

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

  // Return an error as a plain object, with what was expected.
  function describeError(error) {
    const of = isObject(error) ? error : { message: String(error) };
    const text = (value) => (value === undefined || value === null ? "" : String(value));
    return {
      name: text(of.name),
      message: text(of.message),
      stack: text(of.stack),
      code: text(of.code),
      expected: text(of.expected),
      actual: text(of.actual),
    };
  }

  // Run one test; return null or its error.
  function Test(_ctx, index) {
    try {
      const value = tests[index].body();
      return isObject(value) && typeof value.then === "function"
        ? value.then(() => null, describeError)
        : null;
    } catch (error) {
      return describeError(error);
    }
  }

  const Tests = () => tests.map(({ name, skip, stack }) => ({ name, skip, stack }));

  Object.assign(globalThis, { test, describe, expect, turn });
  return { Tests, Test };
})

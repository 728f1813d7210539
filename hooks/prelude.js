// The JavaScript side of a hook's run: the bridge to the host, `ctx`, the module loader and the call of a hook.
//
// A function of `table` (what there is to call), the same for every run: an isolate may be made before its run is known, which
// `begin` then tells it. Its value is the bridge's buffer, which only the host sees. What it needs of the language is taken
// before any hook runs, so that a hook that replaces a builtin breaks only itself: code that runs later looks up no property of
// a builtin, spreads nothing, iterates over nothing, and gives property descriptors no prototype.
//
// Every isolate compiles this file anew, which is most of what a run costs beside the isolate. So what few runs need is in
// seldom.js, groups of calls are made when they are first asked for, and functions that every run needs stand in parentheses:
// V8 then compiles them with what is around them, instead of looking over them first and reading them again when called.
(function (table) {
  "use strict";
  const { apply, construct, defineProperty, getPrototypeOf, setPrototypeOf } = Reflect;
  const { parse, stringify } = JSON;
  const { Error, TypeError, Promise, Proxy, String, Uint16Array } = globalThis;
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const charCodeAt = uncurried(String.prototype.charCodeAt);
  const slice = uncurried(String.prototype.slice);
  const includes = uncurried(String.prototype.includes);
  const lastIndexOf = uncurried(String.prototype.lastIndexOf);
  const then = uncurried(Promise.prototype.then);
  const resolved = Promise.resolve.bind(Promise);
  const promised = Promise.prototype;
  const isPrototypeOf = uncurried(Object.prototype.isPrototypeOf);
  const { fromCharCode } = String;
  const { now } = Date;
  delete JSON.rawJSON;  // with it a script could hand over numbers that no number in JavaScript can be
  delete Atomics.wait;  // there is no other thread to wait for, and no clock would run meanwhile
  delete Atomics.waitAsync;
  const evaluate = eval;
  const root = globalThis;

  // ------------------------------------------------------------------------------------------------ bridge
  const memory = new SharedArrayBuffer(12 + 2 * table.units);
  let native;
  defineProperty(memory, "native", { set(made) { native = made; } });

  // A typed array on the buffer whose prototype and length no hook can reach.
  const bare = ((kind, offset, length) => {
    const array = construct(kind, [memory, offset, length]);
    setPrototypeOf(array, null);
    defineProperty(array, "length", { __proto__: null, value: length });
    return array;
  });
  const head = bare(Int32Array, 0, 3);
  const units = bare(Uint16Array, 12, table.units);

  // bridge.py describes the header.
  const cross = ((what, count) => {
    head[0] = what;
    head[1] = count;
    native();
    if (head[0] !== 0) throw new Error("this run was ended by the host");
  });

  const ask = ((name, json) => {
    const text = name + "\n" + json;
    const length = text.length;
    let at = 0;
    do {
      const count = length - at < table.units ? length - at : table.units;
      for (let i = 0; i < count; i++) units[i] = charCodeAt(text, at + i);
      at += count;
      cross(at < length ? 1 : 2, count);
    } while (at < length);
    let reply = "";
    for (;;) {
      const count = head[1];
      for (let i = 0; i < count; i += 4096) {
        reply += apply(fromCharCode, undefined, bare(Uint16Array, 12 + 2 * i, count - i < 4096 ? count - i : 4096));
      }
      if (head[2] === 0) return reply;
      cross(3, 0);
    }
  });

  const call = ((name, args) => {
    const json = stringify(args);
    if (json.length > limits.argument_kb * 1024) ask("!limit", "argument_kb");
    if (includes(json, "null")) seldom().holes(args, name);
    const reply = ask(name, json);
    if (reply === "") return undefined;
    const value = parse(slice(reply, 1));
    if (charCodeAt(reply, 0) === 61) return value;
    throw seldom().failure(value);
  });

  // ------------------------------------------------------------------------------------------------ ctx and globals
  const taken = {
    __proto__: null, Error, TypeError, Promise, String, stringify, slice, lastIndexOf, defineProperty, getPrototypeOf,
    keys: Object.keys, apply, then, resolved, now, evaluate, groups: table.groups, call, ask, guard: (of, path) => guard(of, path), heard: (value) => heard(value),
  };
  let seldomMade;
  const seldom = () => (seldomMade ??= evaluate(ask("!seldom", ""))(taken));
  let objectsMade;
  const objects = () => (objectsMade ??= evaluate(ask("!objects", ""))(taken, seldom(), guard));

  // An object whose unknown properties say what is missing instead of being undefined.
  const guard = ((of, path) => new Proxy(of, {
    __proto__: null,
    get: (_, key) => (key in of || typeof key === "symbol" || key === "then" || key === "toJSON" ? of[key] : seldom().missing(of, path, key)),
  }));
  const put = ((of, name, value) =>
    defineProperty(of, name, { __proto__: null, value, enumerable: of !== root, writable: true, configurable: true }));

  const made = ((full, { prints, maker }) =>
    maker !== "" ? (...args) => objects()[maker](full, args)
      : prints ? (...args) => seldom().print(full, args) : (...args) => call(full, args));

  const group = ((described) => {
    const { path, names, inner } = described;
    const of = {};
    for (let i = 0; i < names.length; i++) put(of, names[i], made(path + "." + names[i], described));
    for (let i = 0; i < inner.length; i++) lazily(of, inner[i].name, () => group(inner[i]));
    return guard(of, path);
  });

  // A property that is made when it is first read.
  const lazily = ((of, name, make) => defineProperty(of, name, {
    __proto__: null,
    get() {
      const value = make();
      put(of, name, value);
      return value;
    },
    set(value) { put(of, name, value); },
    enumerable: of !== root,
    configurable: true,
  }));

  for (let i = 0; i < table.groups.length; i++) {
    const described = table.groups[i];
    if (!described.on_ctx) lazily(root, described.name, () => group(described));
  }
  for (let i = 0; i < table.late.length; i++) lazily(root, table.late[i], () => seldom().late(table.late[i]));

  const added = table.added === "" ? undefined : evaluate(table.added)(taken);
  let ctx, limits;

  // Called once, before any code of the hook; `run` is JSON {context, limits, fixed: {now, seed}}.
  const begin = ((run) => {
    if (ctx !== undefined) return;
    const { context, limits: given, fixed } = parse(run);
    limits = given;
    if (fixed.now !== null || fixed.seed !== null) seldom().fix(fixed);
    for (let i = 0; i < table.groups.length; i++) {
      const described = table.groups[i];
      const { path, names } = described;
      if (path !== "ctx") {
        if (described.on_ctx) lazily(context, described.name, () => group(described));
        continue;
      }
      for (let j = 0; j < names.length; j++) put(context, names[j], made("ctx." + names[j], described));
    }
    ctx = guard(context, "ctx");
  });

  // ------------------------------------------------------------------------------------------------ modules
  let modules = [];

  // Compiles every module. "" or, when V8 refuses one, "%" and {index, message}.
  const compile = ((program) => {
    const list = parse(program);
    for (let i = 0; i < list.length; i++) {
      try {
        list[i].make = evaluate(list[i].code);
      } catch (error) {
        return "%" + stringify({ __proto__: null, index: i, message: seldom().told(error, "message") });
      }
    }
    modules = list;
    return "";
  });

  const load = ((index) => {
    const entry = modules[index];
    if (entry.module === undefined) {
      const module = (entry.module = { exports: {} });
      setPrototypeOf(entry.requires, null);
      const require = (name) => {
        const target = entry.requires[name];
        return target === undefined ? seldom().cannotImport(name) : load(target);
      };
      entry.own = apply(entry.make, undefined, [module.exports, require, module]);
    }
    return entry.module.exports;
  });

  const find = ((name) => {
    const exported = load(0);
    const places = [exported, exported.default, modules[0].own, added];
    for (let i = 0; i < 4; i++) {
      const hook = places[i]?.[name];
      if (hook !== undefined && hook !== null) return hook;
    }
    return undefined;
  });

  // ------------------------------------------------------------------------------------------------ the hooks
  // What came of a hook, as text: "" nothing, "=" JSON, "!" threw, "?" no JSON can be made of it, "^" a limit, "~" later,
  // "&" never, "#" no function, but a value of that type.
  const packed = ((value) => {
    if (value === undefined || value === null) return "";
    let json;
    try {
      json = stringify(value);
    } catch (error) {
      return "?" + seldom().describe(error);
    }
    if (json === undefined) return "?" + stringify({ __proto__: null, message: "a " + typeof value + " has no JSON form" });
    if (json.length > limits.result_kb * 1024) return "^result_kb";
    if (includes(json, "null")) seldom().holes(value, "");
    return "=" + json;
  });

  let settled;
  let watching = false;

  // What a statement or a variable is given, and functions (`kind` 1) whose caller may drop what they give: the compiler
  // (transpile.js) hands them over, since a promise that nobody awaits may be among them.
  const heard = ((value, kind) => {
    if (kind === 1 && typeof value === "function") {
      const listened = function (...args) { return heard(apply(value, this, args)); };
      // Who is given it may go by how many arguments it takes.
      defineProperty(listened, "length", { __proto__: null, value: value.length, configurable: true });
      return listened;
    }
    if (typeof value !== "object" || value === null || !isPrototypeOf(promised, value)) return value;
    watching = true;
    return seldom().watch(value);
  });

  // With promises to watch, a hook has ended when its microtasks have run.
  const ended = ((text) => {
    if (!watching) return text;
    settled = text;
    return "~";
  });

  // After "~", once the microtasks have run, and again as long as the answer is "~": what came of the promise, or the next timer.
  const later = () => {
    const text = settled ?? seldom().later();
    if (watching && text !== "~") seldom().unheard();
    return text;
  };

  const invoke = ((name, args, program) => {
    try {
      if (seldomMade !== undefined) seldomMade.dropTimers();
      if (program !== undefined) {
        const refused = compile(program);
        if (refused !== "") return refused;
      }
      const hook = find(name);
      if (typeof hook !== "function") return ended(hook === undefined ? "" : "#" + typeof hook);
      const given = parse(args);
      const value = apply(hook, undefined, [ctx, given[0], given[1]]);
      if (typeof value !== "object" || value === null || typeof value.then !== "function") return ended(packed(value));
      settled = undefined;
      then(resolved(value), (result) => { settled = packed(result); }, (error) => { settled = "!" + seldom().describe(error); });
      return "~";
    } catch (error) {
      return ended("!" + seldom().describe(error));
    }
  });

  defineProperty(globalThis, "__groundhook", { value: Object.freeze({ __proto__: null, begin, invoke, later, compile, heard }) });
  return memory;
})

// The JavaScript side of a hook's run: the bridge to the host, `ctx`, the globals, the module loader and the call of a hook.
//
// A function of `table` (the calls there are; the same for every run) and `run` (JSON: context, limits). Its value is the
// bridge's buffer, which only the host sees. What it needs of the language is taken before any hook runs, so that a hook
// that replaces a builtin breaks only itself: code that runs later looks up no property of a builtin, spreads nothing,
// iterates over nothing, and gives property descriptors no prototype.
(function (table, run) {
  "use strict";
  const { apply, construct, defineProperty, setPrototypeOf } = Reflect;
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const { parse, stringify } = JSON;
  const { Error, TypeError, Proxy, Promise, Uint16Array, String, Object } = globalThis;
  const { min } = Math;
  const { fromCharCode } = String;
  const charCodeAt = uncurried(String.prototype.charCodeAt);
  const slice = uncurried(String.prototype.slice);
  const join = uncurried(Array.prototype.join);
  const hasOwn = uncurried(Object.prototype.hasOwnProperty);
  const then = uncurried(Promise.prototype.then);
  const resolved = Promise.resolve.bind(Promise);
  const evaluate = eval;
  const { context, limits } = parse(run);

  // ------------------------------------------------------------------------------------------------ bridge
  const MORE = 1, CALL = 2, FETCH = 3, DONE = 0, SLICE = 4096;
  const memory = new SharedArrayBuffer(16 + 2 * table.units);
  let native;
  defineProperty(memory, "native", { set(made) { native = made; } });

  // A typed array on the buffer whose prototype and length no hook can reach.
  function bare(kind, offset, length) {
    const array = construct(kind, [memory, offset, length]);
    setPrototypeOf(array, null);
    return defineProperty(array, "length", { __proto__: null, value: length }) && array;
  }
  const head = bare(Int32Array, 0, 4);
  const units = bare(Uint16Array, 16, table.units);

  function ask(name, json) {
    const text = name + "\n" + json;
    let at = 0;
    do {
      const count = min(text.length - at, table.units);
      for (let i = 0; i < count; i++) units[i] = charCodeAt(text, at + i);
      at += count;
      head[0] = at < text.length ? MORE : CALL;
      head[1] = count;
      native();
      if (head[0] !== DONE) throw new Error("this run was ended by the host");
    } while (at < text.length);
    let reply = "";
    for (;;) {
      const count = head[1];
      for (let i = 0; i < count; i += SLICE) {
        reply += apply(fromCharCode, undefined, bare(Uint16Array, 16 + 2 * i, min(SLICE, count - i)));
      }
      if (head[2] === 0) return reply;
      head[0] = FETCH;
      native();
      if (head[0] !== DONE) throw new Error("this run was ended by the host");
    }
  }

  function call(name, args) {
    const json = stringify(args);
    if (json.length > limits.argument_kb * 1024) ask("!limit", "argument_kb");
    const reply = ask(name, json);
    if (reply === "") return undefined;
    const value = parse(slice(reply, 1));
    if (charCodeAt(reply, 0) === 61) return value;
    const error = value.name === "TypeError" ? new TypeError(value.message) : new Error(value.message);
    if (value.code) error.code = value.code;
    throw error;
  }

  // ------------------------------------------------------------------------------------------------ values as text
  const told = (read) => {
    try {
      const value = read();
      return value === undefined || value === null ? "" : String(value);
    } catch {
      return "";
    }
  };

  function describe(error) {
    const object = (typeof error === "object" && error !== null) || typeof error === "function";
    if (!object) return stringify({ name: "", message: told(() => error), stack: "", code: "" });
    const message = told(() => error.message);
    return stringify({
      name: told(() => error.name),
      message: message === "" ? told(() => stringify(error)) : message,
      stack: told(() => error.stack),
      code: told(() => error.code),
    });
  }

  // A value for the log: a primitive, or the text that stands for it.
  function shown(value) {
    if (typeof value === "string") return value.length > table.longest_log ? slice(value, 0, table.longest_log) + "..." : value;
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") return value - value === 0 ? value : String(value);
    if (typeof value === "function") return "[Function " + told(() => value.name) + "]";
    if (typeof value !== "object") return String(value);
    const stack = told(() => value.stack);
    return shown(stack !== "" ? stack : told(() => stringify(value)) || "[object]");
  }

  function print(name, args) {
    const texts = [];
    for (let i = 0; i < args.length && i < table.most_log; i++) {
      defineProperty(texts, i, { __proto__: null, value: shown(args[i]), enumerable: true, writable: true, configurable: true });
    }
    call(name, texts);
  }

  // ------------------------------------------------------------------------------------------------ ctx and globals
  function absent(name, instead) {
    return new Error(name + " is not offered by this host" + (instead ? ": " + instead : ""));
  }

  // An object whose unknown properties say what is missing instead of being undefined.
  function guarded(target, path, missing) {
    const known = join(Object.keys(target), ", ");
    return new Proxy(target, {
      __proto__: null,
      get(of, key) {
        if (typeof key === "symbol" || key in of || key === "then" || key === "toJSON") return of[key];
        throw absent(path + "." + key, hasOwn(missing, key) ? missing[key] : "there are " + known);
      },
    });
  }

  const global = (name, value) => defineProperty(globalThis, name, { value, writable: true, configurable: true });

  for (const group of table.groups) {
    const made = {};
    for (const name of group.names) {
      const path = group.path + "." + name;
      made[name] = { [name]: group.prints ? (...args) => print(path, args) : (...args) => call(path, args) }[name];
    }
    const value = guarded(made, group.path, {});
    if (group.on_ctx) context[group.name] = value;
    else global(group.name, value);
  }
  const ctx = guarded(context, "ctx", table.missing_on_ctx);
  for (const name of Object.keys(table.missing_functions)) {
    global(name, function () { throw absent(name, table.missing_functions[name]); });
  }
  for (const name of Object.keys(table.missing_objects)) {
    const refuse = (_, key) => {
      if (typeof key === "symbol") return undefined;
      throw absent(name + "." + key, table.missing_objects[name]);
    };
    global(name, new Proxy({}, { __proto__: null, get: refuse }));
  }

  global("Exception", function Exception(message, code) {
    const error = new Error(told(() => message));
    error.name = "Exception";
    error.code = code;
    return error;
  });

  // Compiled when a hook first asks for one of them.
  for (const name of table.encodings.names) {
    const get = () => apply(evaluate(table.encodings.source), undefined, [])[name];
    const set = (value) => { defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true }); };
    defineProperty(globalThis, name, { get, set, configurable: true });
  }

  // ------------------------------------------------------------------------------------------------ modules
  let modules = [];

  // Compiles every module. "" or, when V8 refuses one, "%" and {index, message}.
  function compile(program) {
    const list = parse(program);
    for (let i = 0; i < list.length; i++) {
      try {
        list[i].make = evaluate(list[i].code);
      } catch (error) {
        return "%" + stringify({ index: i, message: told(() => error.message) });
      }
    }
    modules = list;
    return "";
  }

  function load(index) {
    const entry = modules[index];
    if (entry.module === undefined) {
      const module = (entry.module = { exports: {} });
      const require = (name) => {
        if (typeof name === "string" && hasOwn(entry.requires, name)) return load(entry.requires[name]);
        throw new Error("cannot import " + told(() => name) + ": only files of the package, named by a literal, can be imported");
      };
      entry.own = apply(entry.make, undefined, [module.exports, require, module]);
    }
    return entry.module.exports;
  }

  function find(name) {
    const exported = load(0);
    const places = [exported, exported.default, modules[0].own];
    for (let i = 0; i < 3; i++) {
      const place = places[i];
      if (place !== undefined && place !== null && typeof place[name] === "function") return place[name];
    }
    return undefined;
  }

  // ------------------------------------------------------------------------------------------------ the hooks
  // What came of a hook, as text: "" nothing, "=" JSON, "!" threw, "?" no JSON can be made of it, "^" a limit, "~" later.
  function packed(value) {
    if (value === undefined || value === null) return "";
    let json;
    try {
      json = stringify(value);
    } catch (error) {
      return "?" + describe(error);
    }
    if (json === undefined) return "=null";
    return json.length > limits.result_kb * 1024 ? "^result_kb" : "=" + json;
  }

  const settle = (text) => ask("!settled", text);

  function invoke(name, args, program) {
    try {
      if (program !== undefined) {
        const refused = compile(program);
        if (refused !== "") return refused;
      }
      const hook = find(name);
      if (hook === undefined) return "";
      const given = parse(args);
      const value = apply(hook, undefined, [ctx, given[0], given[1]]);
      if (typeof value !== "object" || value === null || typeof value.then !== "function") return packed(value);
      then(resolved(value), (result) => settle(packed(result)), (error) => settle("!" + describe(error)));
      return "~";
    } catch (error) {
      return "!" + describe(error);
    }
  }

  defineProperty(globalThis, "__groundhook", { value: Object.freeze({ __proto__: null, invoke, compile }) });
  return memory;
})

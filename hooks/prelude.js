// The JavaScript side of a hook's run: the bridge to the host, `ctx`, the module loader and the
// call of a hook.
//
// A function of `table` (the host calls), the same for every run: an isolate may be made before its
// run is known; `begin` makes it that of a run. It returns the bridge's buffer, which only the host
// sees. It takes the builtins it needs before any hook runs, so that a hook that replaces a builtin
// breaks only itself: code that runs later reads no property of a builtin, uses no spread and no
// iteration, and gives property descriptors no prototype.
//
// Every isolate compiles this file again, which is most of what a run costs beside the isolate. So
// code that few runs need is in lazy_globals.js, groups of calls are made when they are first used,
// and functions that every run needs are in parentheses: V8 then compiles them together with the
// code around them, instead of parsing them twice.
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
  const { keys } = Object;
  const isPrototypeOf = uncurried(Object.prototype.isPrototypeOf);
  const nameOfKind = uncurried(Object.prototype.toString);
  const { fromCharCode } = String;
  const { now } = Date;
  delete JSON.rawJSON; // it would let a script send numbers that JavaScript itself cannot hold
  delete Atomics.wait; // no other thread could wake it, and the CPU clock stops meanwhile
  delete Atomics.waitAsync;
  const evaluate = eval;
  const root = globalThis;

  // ---- bridge

  const memory = new SharedArrayBuffer(12 + 2 * table.units);
  let native;
  defineProperty(memory, "native", {
    set(made) {
      native = made;
    },
  });

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
        reply += apply(
          fromCharCode,
          undefined,
          bare(Uint16Array, 12 + 2 * i, count - i < 4096 ? count - i : 4096),
        );
      }
      if (head[2] === 0) return reply;
      cross(3, 0);
    }
  });

  // Whether JSON may have lost something of a value: it writes null for NaN and the like, {} for a
  // Map, a promise or an error. Empty objects are common, so their kind is looked at here.
  const mayLose = ((value, json) => {
    if (includes(json, "null")) return true;
    if (!includes(json, "{}")) return false;
    let found = false;
    try {
      stringify(value, (key, here) => {
        if (found || typeof here !== "object" || here === null) return here;
        const kind = nameOfKind(here);
        found = kind !== "[object Object]" && kind !== "[object Array]";
        return here;
      });
    } catch {
      return false; // a getter of the hook that throws the second time
    }
    return found;
  });

  const call = ((name, args) => {
    const json = stringify(args);
    if (json.length > limits.argument_kb * 1024) ask("!limit", "argument_kb");
    if (mayLose(args, json)) lazyGlobals().reportLost(args, name);
    const reply = ask(name, json);
    if (reply === "") return undefined;
    if (reply === "?") ask("!late", lazyGlobals().describe(new Error())); // ends the run
    const value = parse(slice(reply, 1));
    if (charCodeAt(reply, 0) === 61) return value;
    throw lazyGlobals().makeError(value);
  });

  // ---- ctx and globals

  const builtins = {
    __proto__: null,
    Error,
    TypeError,
    Promise,
    String,
    stringify,
    slice,
    includes,
    lastIndexOf,
    nameOfKind,
    defineProperty,
    getPrototypeOf,
    keys,
    apply,
    then,
    resolved,
    now,
    evaluate,
    groups: table.groups,
    call,
    ask,
    guard: (of, path) => guard(of, path),
    watched: (value) => watched(value),
  };
  let loadedGlobals;
  const lazyGlobals = () => (loadedGlobals ??= evaluate(ask("!lazy_globals", ""))(builtins));
  let loadedObjects;
  const objects = () =>
    (loadedObjects ??= evaluate(ask("!objects", ""))(builtins, lazyGlobals(), guard));

  // Return an object whose unknown properties throw an error that names them, instead of being
  // undefined.
  const guard = ((of, path) =>
    new Proxy(of, {
      __proto__: null,
      get: (_, key) =>
        key in of || typeof key === "symbol" || key === "then" || key === "toJSON"
          ? of[key]
          : lazyGlobals().missing(of, path, key),
    }));
  const put = ((of, name, value) =>
    defineProperty(of, name, {
      __proto__: null,
      value,
      enumerable: of !== root,
      writable: true,
      configurable: true,
    }));

  const makeCall = ((full, { prints, maker }) =>
    maker !== ""
      ? function (...args) {
          return objects()[maker](full, args, this);
        }
      : prints
        ? (...args) => lazyGlobals().print(full, args)
        : (...args) => call(full, args));

  const makeGroup = ((described) => {
    const { path, names, inner } = described;
    const of = {};
    for (let i = 0; i < names.length; i++)
      put(of, names[i], makeCall(path + "." + names[i], described));
    for (let i = 0; i < inner.length; i++) lazily(of, inner[i].name, () => makeGroup(inner[i]));
    if (path === "ctx.trace") put(of, "id", traceId);
    return guard(of, path);
  });

  // Define a property whose value is made when it is first read.
  const lazily = ((of, name, make) =>
    defineProperty(of, name, {
      __proto__: null,
      get() {
        const value = make();
        put(of, name, value);
        return value;
      },
      set(value) {
        put(of, name, value);
      },
      enumerable: of !== root,
      configurable: true,
    }));

  for (let i = 0; i < table.groups.length; i++) {
    const described = table.groups[i];
    if (!described.on_ctx) lazily(root, described.name, () => makeGroup(described));
  }
  for (let i = 0; i < table.lazy.length; i++)
    lazily(root, table.lazy[i], () => lazyGlobals().find(table.lazy[i]));

  const added = table.added === "" ? undefined : evaluate(table.added)(builtins);
  let ctx, limits, traceId;

  // Called once, before any code of the hook; `run` is JSON {context, limits, fixed: {now, seed},
  // trace}.
  const begin = ((run) => {
    if (ctx !== undefined) return;
    const { context, limits: given, fixed, trace } = parse(run);
    limits = given;
    traceId = trace;
    if (fixed.now !== null || fixed.seed !== null) lazyGlobals().fix(fixed);
    for (let i = 0; i < table.groups.length; i++) {
      const described = table.groups[i];
      const { path, names } = described;
      if (path !== "ctx") {
        if (described.on_ctx) lazily(context, described.name, () => makeGroup(described));
        continue;
      }
      for (let j = 0; j < names.length; j++)
        put(context, names[j], makeCall("ctx." + names[j], described));
    }
    ctx = guard(context, "ctx");
  });

  // ---- modules

  let modules = [];

  // Compile every module. Return "" or, when V8 refuses one, "%" and {index, message}.
  const compile = ((program) => {
    const list = parse(program);
    for (let i = 0; i < list.length; i++) {
      try {
        list[i].make = evaluate(list[i].code);
      } catch (error) {
        return (
          "%" +
          stringify({
            __proto__: null,
            index: i,
            message: lazyGlobals().readText(error, "message"),
          })
        );
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
      if (entry.functions !== undefined) setPrototypeOf(entry.functions, null);
      const require = (name) => {
        const target = entry.requires[name];
        return target === undefined ? lazyGlobals().cannotImport(name) : load(target);
      };
      entry.own = apply(entry.make, undefined, [module.exports, require, module]);
    }
    return entry.module.exports;
  });

  const find = ((name) => {
    const entry = modules.length > 1 && modules[1].serves === name ? 1 : 0;
    const exported = load(entry);
    // The name in the file, where package.yao gives one.
    const written = modules[entry].functions?.[name] ?? name;
    const places = [exported, exported?.default, modules[entry].own, added];
    for (let i = 0; i < 4; i++) {
      const place = places[i];
      const hook = place?.[written];
      if (hook !== undefined && hook !== null) return hook;
      // module.exports = function Create(ctx) {…}
      if (typeof place === "function" && place.name === written) return place;
    }
    if (written !== name) ask("!no_hook", written);
    else if (name === "Create" && find("Next") === undefined) ask("!no_hook", "");
    return undefined;
  });

  // ---- the hooks

  // Return the outcome of a hook as text: "" nothing, "=" JSON, "!" threw, "?" has no JSON form,
  // "^" a limit, "~" not settled yet, "&" can never settle, "#" not a function but a value of that
  // type, "%" a syntax error.
  const pack = ((value) => {
    if (value === undefined || value === null) return "";
    let json;
    try {
      json = stringify(value);
    } catch (error) {
      return "?" + lazyGlobals().describe(error);
    }
    if (json === undefined)
      return (
        "?" + stringify({ __proto__: null, message: "a " + typeof value + " has no JSON form" })
      );
    if (json.length > limits.result_kb * 1024) return "^result_kb";
    if (mayLose(value, json)) lazyGlobals().reportLost(value, "");
    return "=" + json;
  });

  // Of `ctx` as the value of a hook, what a hook may return counts.
  const returned = ((name, value) => {
    if (value !== ctx || ctx === undefined || (name !== "Create" && name !== "Next")) return value;
    const { metadata, locale, theme, route } = ctx;
    const own = { __proto__: null, metadata };
    if (name === "Create") {
      if (locale) own.locale = locale;
      if (theme) own.theme = theme;
      if (route) own.route = route;
    }
    return own;
  });

  let settled;
  let watching = false;

  // The compiler (transpile.js) passes everything through here that may be a promise that is not
  // awaited: values of statements and variables, and functions (`kind` 1) whose caller may drop
  // what they return.
  const watched = ((value, kind) => {
    if (kind === 1 && typeof value === "function") {
      const wrapper = function (...args) {
        return watched(apply(value, this, args));
      };
      // A callee may look at how many arguments it takes.
      defineProperty(wrapper, "length", {
        __proto__: null,
        value: value.length,
        configurable: true,
      });
      return wrapper;
    }
    if (typeof value !== "object" || value === null || !isPrototypeOf(promised, value))
      return value;
    watching = true;
    return lazyGlobals().watch(value);
  });

  // The compiler (transpile.js) passes what a catch clause catches through here: V8's message about
  // a missing part of `ctx` does not say what to use instead.
  const caught = ((error) => {
    if (loadedGlobals !== undefined) loadedGlobals.completeMessage(error);
    return error;
  });

  // The same for the callback of a promise that is called with its error.
  const catching = ((callback) =>
    typeof callback === "function" ? (error) => callback(caught(error)) : callback);

  // With promises to watch, a hook has ended only when its microtasks have run.
  const finish = ((text) => {
    if (!watching) return text;
    settled = text;
    return "~";
  });

  // Called after "~", once the microtasks have run, and again while it returns "~": the promise's
  // outcome, or the next timer.
  const later = () => {
    const text = settled ?? lazyGlobals().fireTimer();
    if (watching && text !== "~") lazyGlobals().reportUnawaited();
    return text;
  };

  // Set the fields of `ctx` that have changed since the hook before.
  const change = ((fields) => {
    if (typeof fields !== "object" || fields === null || ctx === undefined) return;
    const names = keys(fields);
    for (let i = 0; i < names.length; i++) put(ctx, names[i], fields[names[i]]);
  });

  const invoke = ((name, args, program) => {
    try {
      if (loadedGlobals !== undefined) loadedGlobals.dropTimers();
      if (program !== undefined) {
        const refused = compile(program);
        if (refused !== "") return refused;
      }
      const hook = find(name);
      if (typeof hook !== "function") return finish(hook === undefined ? "" : "#" + typeof hook);
      const given = parse(args);
      change(given[2]);
      // For a function that is called by its name: its arguments, where it takes ctx, and which of
      // them are absent.
      if (given[4] >= 0) given[3][given[4]] = ctx;
      for (let i = 0; i < given[5]?.length; i++) given[3][given[5][i]] = undefined;
      const value = apply(
        hook,
        undefined,
        given[3] === undefined ? [ctx, given[0], given[1]] : given[3],
      );
      if (typeof value !== "object" || value === null || typeof value.then !== "function")
        return finish(pack(returned(name, value)));
      settled = undefined;
      then(
        resolved(value),
        (result) => {
          settled = pack(returned(name, result));
        },
        (error) => {
          settled = "!" + lazyGlobals().describe(error);
        },
      );
      return "~";
    } catch (error) {
      return finish("!" + lazyGlobals().describe(error));
    }
  });

  const called = { __proto__: null, begin, invoke, later, compile, watched, caught, catching };
  defineProperty(globalThis, "__groundhook", { value: Object.freeze(called) });
  return memory;
})

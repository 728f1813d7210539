// Calls whose result is more than a JSON value: nodes of the trace, and answers that `onChunk`
// receives while they arrive. A function of the builtins that prelude.js took; loaded when it is
// first used. Each maker is a function (the call's full name, its arguments).
(function (builtins, lazyGlobals, guard) {
  "use strict";
  const { defineProperty, keys, lastIndexOf, slice, call, groups } = builtins;

  const put = (list, index, value) =>
    defineProperty(list, index, {
      __proto__: null,
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });

  const nameOf = (full) => slice(full, lastIndexOf(full, ".") + 1);

  // ---- nodes of the trace

  const PRINTS = { __proto__: null, Info: true, Debug: true, Warn: true, Error: true };

  // Make a call on a node, whose id goes before the arguments. Calls without an answer return the
  // node, for chains.
  function callOnNode(id, full, args, node) {
    const name = nameOf(full);
    if (name === "GetSpace") return spaces[args[0]] ?? null;
    const given = [];
    put(given, 0, id);
    for (let i = 0; i < args.length && i < lazyGlobals.most_log; i++) {
      put(
        given,
        i + 1,
        name === "Fail"
          ? lazyGlobals.reason(args[i])
          : PRINTS[name]
            ? lazyGlobals.toLogValue(args[i])
            : args[i],
      );
    }
    const answer = call(full, given);
    if (name === "Add") return makeNode(answer, full);
    if (name === "CreateSpace") return makeSpace(answer, full);
    if (name !== "Parallel") return answer === undefined && name !== "Release" ? node : answer;
    const nodes = [];
    for (let i = 0; i < answer.length; i++) put(nodes, i, makeNode(answer[i], full));
    return nodes;
  }

  function makeNode(id, full) {
    const path = slice(full, 0, lastIndexOf(full, "."));
    const node = { id };
    const guarded = guard(node, "node");
    for (let i = 0; i < groups.length; i++) {
      const group = groups[i];
      for (let j = 0; group.path === path && j < group.names.length; j++) {
        const method = path + "." + group.names[j];
        put(node, group.names[j], (...args) => callOnNode(id, method, args, guarded));
      }
    }
    return guarded;
  }

  const spaces = { __proto__: null };

  // Return a node with values; they are kept here, and its metadata has them.
  function makeSpace(id, full) {
    const space = makeNode(id, full);
    let values = { __proto__: null };
    const changed = () => {
      call(slice(full, 0, lastIndexOf(full, ".")) + ".SetMetadata", [id, "values", values]);
      return space;
    };
    const methods = {
      __proto__: null,
      Set(key, value) {
        values[key] = value;
        return changed();
      },
      Get: (key) => values[key] ?? null,
      Has: (key) => key in values,
      Delete(key) {
        delete values[key];
        return changed();
      },
      Clear() {
        values = { __proto__: null };
        return changed();
      },
      Keys: () => keys(values),
    };
    const names = keys(methods);
    for (let i = 0; i < names.length; i++) put(space, names[i], methods[names[i]]);
    return (spaces[id] = space);
  }

  // ---- answers as they arrive

  const callback = (holder) => {
    if (typeof holder !== "object" || holder === null) return undefined;
    const found = holder.onChunk ?? holder.on_chunk;
    return typeof found === "function" ? found : undefined;
  };

  // Return a function from the position of a request to its `onChunk`; undefined when no request
  // has one.
  function listeners(args, several) {
    const requests = several ? args[0] : undefined;
    const all = callback(several ? args[1] : args[2]);
    if (typeof requests !== "object" || requests === null) return all && (() => all);
    const own = [];
    let any = all;
    for (let i = 0; i < requests.length; i++) {
      put(own, i, callback(requests[i]?.options) ?? all);
      any ??= own[i];
    }
    return any && ((index) => own[index]);
  }

  // Return the assistant or the connector of a request.
  function idOf(args, several, index) {
    if (!several) return args[0];
    const { agent, agent_id, assistant, assistant_id, connector } = args[0][index];
    return agent ?? agent_id ?? assistant ?? assistant_id ?? connector;
  }

  // Whether what `onChunk` returned stops the call.
  const stops = (answer) =>
    answer === true || (typeof answer === "number" && answer !== 0 && answer === answer);

  const makeChunk = (index, content) => ({ type: "text", index, content, props: { content } });

  // The host cannot call back into JavaScript that waits in a call, so this loop requests the next
  // pieces until there are no more.
  function listen(full, args, listener, several) {
    const given = [];
    put(given, 0, full);
    for (let i = 0; i < args.length && i < 3; i++) put(given, i + 1, args[i]);
    const handle = call("answer:open", given);
    let problem = "",
      whole = false;
    try {
      for (let stop = false; !stop;) {
        const arrived = call("answer:next", [handle]);
        if (arrived.late !== undefined) problem = arrived.late;
        stop = arrived.late !== undefined || arrived.length === 0;
        for (let i = 0; i < arrived.length && !stop; i++) {
          const onChunk = listener(arrived[i][0]);
          if (onChunk === undefined) continue;
          const index = arrived[i][0],
            chunk = makeChunk(index, arrived[i][1]);
          // Hooks of this kind take `(chunk)` or `(id, index, chunk)`.
          stop = stops(
            onChunk.length >= 2
              ? onChunk(idOf(args, several, index), index, chunk)
              : onChunk(chunk),
          );
        }
      }
      whole = true;
    } finally {
      if (!whole) call("answer:close", [handle, ""]);
    }
    return call("answer:close", [handle, problem]);
  }

  const makers = {
    __proto__: null,
    node: (full, args, trace) => callOnNode("", full, args, trace),
    answer(full, args) {
      const name = nameOf(full);
      const several = name === "All" || name === "Any" || name === "Race";
      const listener = listeners(args, several);
      if (listener === undefined) return call(full, args);
      const answers = listen(full, args, listener, several);
      return several ? answers : answers[0];
    },
  };
  return makers;
})

// Objects and loops that JavaScript holds for what happens on the host: nodes of the trace, and answers that are heard while they
// arrive. A function of what prelude.js took from the language; evaluated when first asked for. Each maker is a function
// (the call's full name, its arguments).
(function (taken, seldom, guard) {
  "use strict";
  const { defineProperty, lastIndexOf, slice, call, groups } = taken;

  const put = (list, index, value) =>
    defineProperty(list, index, { __proto__: null, value, enumerable: true, writable: true, configurable: true });

  const nameOf = (full) => slice(full, lastIndexOf(full, ".") + 1);

  // ------------------------------------------------------------------------------------------------ nodes of the trace
  const PRINTS = { __proto__: null, Info: true, Debug: true, Warn: true, Error: true };

  // A call on a node, whose id goes before the arguments.
  function onNode(id, full, args) {
    const name = nameOf(full);
    const given = [];
    put(given, 0, id);
    for (let i = 0; i < args.length && i < seldom.most_log; i++) {
      put(given, i + 1, name === "Fail" ? seldom.reason(args[i]) : PRINTS[name] ? seldom.shown(args[i]) : args[i]);
    }
    const answer = call(full, given);
    return name === "Add" ? made(answer, full) : answer;
  }

  function made(id, full) {
    const path = slice(full, 0, lastIndexOf(full, "."));
    const node = { id };
    for (let i = 0; i < groups.length; i++) {
      const group = groups[i];
      for (let j = 0; group.path === path && j < group.names.length; j++) {
        const method = path + "." + group.names[j];
        put(node, group.names[j], (...args) => onNode(id, method, args));
      }
    }
    return guard(node, "node");
  }

  // ------------------------------------------------------------------------------------------------ answers as they arrive
  const callback = (holder) => {
    const heard = typeof holder === "object" && holder !== null ? holder.onChunk : undefined;
    return typeof heard === "function" ? heard : undefined;
  };

  // Who hears what: the callbacks of a call, by the position of the request they are for; undefined when there are none.
  function hearers(args, several) {
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

  const stops = (answer) => answer === true || (typeof answer === "number" && answer !== 0 && answer === answer);

  const piece = (index, content) => ({ type: "text", index, content, props: { content } });

  // JavaScript that waits in a call cannot be called back, so it asks for the next pieces until there are no more.
  function hear(full, args, hearer) {
    const given = [];
    put(given, 0, full);
    for (let i = 0; i < args.length && i < 3; i++) put(given, i + 1, args[i]);
    const handle = call("answer:open", given);
    let problem = "", whole = false;
    try {
      for (let stop = false; !stop; ) {
        const arrived = call("answer:next", [handle]);
        if (arrived.late !== undefined) problem = arrived.late;
        stop = arrived.late !== undefined || arrived.length === 0;
        for (let i = 0; i < arrived.length && !stop; i++) {
          const heard = hearer(arrived[i][0]);
          if (heard !== undefined) stop = stops(heard(piece(arrived[i][0], arrived[i][1])));
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
    node: (full, args) => onNode("", full, args),
    answer(full, args) {
      const name = nameOf(full);
      const several = name === "All" || name === "Any" || name === "Race";
      const hearer = hearers(args, several);
      if (hearer === undefined) return call(full, args);
      const answers = hear(full, args, hearer);
      return several ? answers : answers[0];
    },
  };
  return makers;
})

"""The hook with which `bench.stops` makes every host call, with a text in each of its places."""

from __future__ import annotations

import json
from collections.abc import Mapping

from groundhook.hooks.api.row import HostCall
from groundhook.hooks.api.table import CALLS as TABLE

# Rows that no hook calls by their names: `ctx.agent.Call` and `ctx.llm.Stream` are made of them.
INNER = ("answer:open", "answer:next", "answer:close")


def _each(*calls: str) -> str:
    """Return JavaScript that makes calls, one after another, whatever becomes of each."""
    return "() => tries([" + ", ".join(f"() => {call}" for call in calls) + "])"


def _given(call: HostCall) -> str:
    """Return a call of a row whose arguments are a text, values or numbers."""
    names = call.ts.partition(")")[0].removeprefix("(")
    kinds = [part.rpartition(": ")[2] for part in names.split(", ") if part]
    values = {"number": "3", "any[]": "[text, text]"}
    return f"{call.js}({', '.join(values.get(kind, 'text') for kind in kinds)})"


_PRINTED = [f"{call.js}(text)" for call in TABLE if call.prints]
_KEPT = [_given(call) for call in TABLE if call.js.startswith("ctx.memory.")]
_STEPS = ("Info", "Debug", "Warn", "Error", "SetOutput", "Complete", "Fail")

# What Create does, by a name: JavaScript with `text` and the address of a service as `url`.
HOOK_CALLS: Mapping[str, str] = {
    "json": '() => Process("text.ExtractJSON", text)',
    "html": '() => Process("text.HTMLToMarkdown", text)',
    "markdown": '() => Process("text.MarkdownToHTML", text)',
    "find": '() => Process("models.row.Find", text)',
    "get": (
        '() => Process("models.row.Get", { wheres: [{ field: "name", op: "match", value: text }] })'
    ),
    "script": _each('Process("scripts.own.say", text)', 'Process("agents.hooked.own.say", text)'),
    "kb": "() => ctx.search.KB(text)",
    "db": "() => ctx.search.DB(text)",
    "where": '() => ctx.search.DB("rows", { wheres: [{ field: "name", value: text }] })',
    "filter": '() => ctx.search.KB("tea", { filter: { [text]: text }, facets: [text] })',
    "searches": _each(
        *(f"ctx.search.{name}(asked)" for name in ("Parallel", "All", "Any", "Race")),
        'ctx.search.Document("notes", text)',
    ),
    "send": '() => ctx.Send({ type: "text", props: { content: text } })',
    "card": '() => ctx.Send({ type: "card", props: { [text]: text } })',
    "log": "() => console.log(text)",
    "prints": _each(*_PRINTED),
    "locale": "() => $L(text)",
    "memory": '() => { ctx.memory.user.Set("k", text); ctx.memory.user.Get("k"); }',
    "memories": _each(*_KEPT),
    "name": "() => Process(text)",
    "web": "() => ctx.search.Web(text)",
    "mcp": '() => ctx.mcp.CallTool("said", "say", { text })',
    "servers": _each(
        'ctx.mcp.ListTools("said")',
        'ctx.mcp.CallTools("said", [{ tool: "say", arguments: { text } }])',
        'ctx.mcp.CallToolsParallel("said", [{ tool: "say", arguments: { text } }])',
        'ctx.mcp.ListResources("said")',
        'ctx.mcp.ReadResource("said", text)',
        'ctx.mcp.ListPrompts("said")',
        'ctx.mcp.GetPrompt("said", text, { text })',
        *(f"ctx.mcp.{name}(called)" for name in ("All", "Any", "Race")),
    ),
    "tools": _each("ctx.tools.List()", 'ctx.tools.Call("said__say", { text })'),
    "agents": _each(
        'ctx.agent.Call("next", text)',
        *(f"ctx.agent.{name}(agents)" for name in ("All", "Any", "Race")),
    ),
    "models": _each(
        'ctx.llm.Stream("model", text, { onChunk: () => 1 })',
        *(f"ctx.llm.{name}(models)" for name in ("All", "Any", "Race")),
    ),
    "requests": _each(
        "http.Get(url, { q: text.slice(0, 5000) })",
        *(f"http.{name}(url, text)" for name in ("Post", "Put", "Patch", "Delete", "Head")),
        "http.Send(text, text)",
    ),
    "history": "() => ctx.chat.History(100)",
    "ask": "() => ctx.Ask(text, [text.slice(0, 200), 'no'])",
    "many": "() => { for (let n = 0; n < 3000; n++) ctx.Send(text.slice(0, 200)); }",
    "grows": (
        '() => { const id = ctx.SendStream("x");'
        " for (let n = 0; n < 3000; n++) ctx.Append(id, text.slice(0, 200)); }"
    ),
    "sets": _each(
        "ctx.Merge(card, { [text]: [text] })",
        "ctx.Set(card, text, text.slice(0, 1000))",
        "ctx.Replace(card, text)",
        "ctx.End(card, text)",
        "ctx.EndBlock(text)",
        *(f"ctx.{name}ID()" for name in ("Message", "Block", "Thread")),
    ),
    "block": '() => ctx.Send({ type: text, props: { content: "x" } }, text)',
    "trace": "() => ctx.trace.Add({ text }, { label: text, type: text })",
    "traces": _each(
        *(f"ctx.trace.{name}(text)" for name in _STEPS),
        "ctx.trace.SetMetadata({ [text]: text })",
        "ctx.trace.Parallel([{ input: text, option: { label: text } }])",
        "ctx.trace.CreateSpace({ label: text })",
        "ctx.trace.GetSpace(text)",
        *(f"ctx.trace.{name}()" for name in ("IsComplete", "MarkComplete", "Release")),
        "ctx.Release()",
    ),
    "sleep": "() => time.Sleep(1)",
    "logs": "() => { for (let n = 0; n < 3000; n++) console.log(text.slice(0, 200)); }",
    "says": '() => ({ messages: ["assistant", "user"].map((role) => ({ role, content: text })) })',
    "data": (
        "() => ({ messages: [{ role: 'user', content: [{ type: 'text', text },"
        " { type: 'data', data: { sources: [{ type: 'text', name: text, text }] } }] }] })"
    ),
    "options": (
        "() => ({ locale: text, prompt_preset: text, connector: text, uses: { web: text } })"
    ),
    "metadata": "() => ({ metadata: { text } })",
    "answer": "() => ({ answer: text })",
    "fails": "() => { throw new Error(text); }",
}
OFTEN = ("many", "grows", "logs")  # each makes thousands of calls
CALLS = tuple(name for name in HOOK_CALLS if name not in OFTEN)
_RETURNED = ("metadata", "says", "data", "options", "answer")
_CASES = ",\n".join(f"    {name}: {code}" for name, code in HOOK_CALLS.items())
HOOK = f"""
const RETURNED = {json.dumps(_RETURNED)};
const url = "$URL/page.txt";

function tries(calls: any[]) {{
  for (const call of calls) try {{ call(); }} catch (error) {{}}
}}

export function Create(ctx: any, messages: any[]) {{
  const {{ call, unit, size }} = JSON.parse(messages[messages.length - 1].content);
  const text = unit.repeat(size / unit.length);
  const asked = [{{ type: "kb", query: text }}, {{ type: "db", query: text }}];
  const called = [{{ server: "said", tool: "say", arguments: {{ text }} }}];
  const agents = [{{ agent: "next", messages: text }}];
  const models = [{{ connector: "model", messages: text }}];
  const card = call === "sets" ? ctx.SendStream({{ type: "card", props: {{}} }}) : "";
  const calls: any = {{
{_CASES}
  }};
  let made: any = null;
  try {{
    made = calls[call]();
  }} catch (error) {{
    if (call === "fails" || call === "ask") throw error;
  }}
  return {{ ...(RETURNED.includes(call) ? made : {{}}), search: false }};
}}
"""
OWN = "export function say(text: string) { return text; }"
NEXT = """
export function Next(ctx: any, payload: any) {
  const text = payload.completion.content;
  return { data: { [text]: [text] }, metadata: { text } };
}
"""


def hooked(call: str, unit: str, size: int) -> str:
    """Return the question with which the assistant `hooked` makes a call."""
    return json.dumps({"call": call, "unit": unit, "size": size})


def undriven() -> list[str]:
    """Return the host calls that the hook does not make."""
    made = "\n".join(HOOK_CALLS.values())
    return [call.js for call in TABLE if call.js not in INNER and f"{call.js}(" not in made]

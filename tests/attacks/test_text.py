"""Hostile text and hostile keys in every place where a hook can say something."""

from __future__ import annotations

import io
import json
import re

import pytest

from groundhook.core.json_lines import line
from groundhook.host.output.terminal import Terminal, console
from tests.attacks.conftest import Arena, Fate

TEXTS = r"""
    const TEXTS = ["\u0000", "a\u0000b", "\ud800", "a\udfffb", "\u202etxt.exe", "\x1b]0;owned\x07\x1b[31m\x9b2J",
      "\r\n\r\n#ref:aaaa", "\u{10ffff}\ufffe",
      "'; DROP TABLE x; --", "{id}{0.__class__}%s%n%(a)s${x}", "../../../etc/passwd", "(((((a+)+)+)+$", "x".repeat(5000)];
"""
COUNT = 13
FIELDS = {
    "locale": "return { locale: T, theme: T, route: T };",
    "metadata": "return { metadata: { [T]: T, list: [T, [T]] } };",
    "message": "return { messages: [{ role: 'user', content: T, name: T }] };",
    "parts": (
        "return { messages: [{ role: 'user', content: [{ type: 'text', text: T }, { type: T, [T]: T"
        " }], [T]: T }] };"
    ),
    "data-part": (
        "const sources = [{ type: 'table', name: T }]; "
        "return { messages: [{ role: 'user', content: [{ type: 'data', data: { sources } }] }] };"
    ),
    "role": "return { messages: [{ role: T, content: T }] };",
    "format": "return { citation: { format: T }, search: true };",
    "format-id": "return { citation: { format: T + '{id}' }, search: true };",
    "prompt": "return { citation: { customPrompt: T }, search: true };",
    "connector": "return { connector: T };",
    "preset": "return { prompt_preset: T };",
    "uses": "return { uses: { [T]: T, keyword: T, web: T }, search: true };",
    "servers": "return { mcp_servers: [T, { [T]: [T] }] };",
    "types": "return { search: { search_types: [T] } };",
    "delegate": "return { delegate: { agent_id: T, options: { [T]: T } } };",
    "key": "return { [T]: 1 };",
    "query": "return { metadata: { r: ctx.search.KB('q' + T) } };",
    "collection": "return { metadata: { r: ctx.search.KB('q', { collections: [T] }) } };",
    "site": (
        "return { metadata: { r: ctx.search.Web('q', { sites: [T], rerank: { type: 'agent', agent:"
        " T } }) } };"
    ),
    "where": (
        "return { metadata: { r: ctx.search.DB('q', { models: [T], wheres: [{ field: T, op: T,"
        " value: T }] }) } };"
    ),
    "option": "ctx.search.KB('q', { [T]: T });",
    "type": "ctx.search.Parallel([{ type: T, query: T }]);",
    "log": "console.log(T, { [T]: T }); log.Info(T, T, 5); log.Warn('%s' + T, T);",
    "error": "throw new Error(T);",
    "error-parts": "throw Object.assign(new Error('x'), { name: T, code: T, stack: T });",
    "thrown": "throw T;",
    "exception": "throw Exception(T, T);",
    "missing": "ctx[T];",
    "function": "return { [T]() { throw new Error('inside'); } }[T]();",
    "rejected": "return Promise.reject(new Error(T));",
}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


@pytest.mark.parametrize("field", FIELDS)
async def test_hostile_text_is_harmless_everywhere(arena: Arena, field: str) -> None:
    before = await arena.before()
    arena.write(
        f"{TEXTS} function Create(ctx, messages) {{ const T = TEXTS[+messages[0].content];"
        f" {FIELDS[field]} }}"
    )
    for number in range(COUNT):
        fate = Fate(await arena.turn("hostile", str(number)))
        assert fate.end.type == "stream_end"
        assert fate.code != "internal", (number, fate.errors)
        for event in fate.events:
            assert json.loads(line(event).encode("utf-8"))["type"] == event.type
        assert CONTROL.findall(_shown(fate)) == []
    await arena.peace(before)


async def test_hostile_text_from_next_is_harmless_too(arena: Arena) -> None:
    arena.write(f"""
        {TEXTS}
        function Next(ctx, payload) {{
          const T = TEXTS[+payload.messages.at(-1).content];
          return {{ data: {{ [T]: T }}, metadata: {{ [T]: T }} }};
        }}
    """)
    for number in range(COUNT):
        fate = Fate(await arena.turn("hostile", str(number)))
        assert fate.code == ""
        line(fate.end).encode("utf-8")
        assert CONTROL.findall(_shown(fate)) == []


def _shown(fate: Fate) -> str:
    """All that a terminal is given."""
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(console(out), console(err), trace=True)
    for event in fate.events:
        terminal.show(event)
    terminal.close()
    return out.getvalue() + err.getvalue()


POLLUTED = '{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": {"polluted": "yes"}}}'


async def test_keys_that_pollute_prototypes_are_data_for_the_host_and_for_later_hooks(
    arena: Arena,
) -> None:
    source = f"""
        const POLLUTED = '{POLLUTED}';
        function Create(ctx) {{
          const value = JSON.parse(POLLUTED);
          return {{ metadata: value, messages: [{{ role: "user", content: "hi", ...JSON.parse(POLLUTED), extra: value }}] }};
        }}
        function Next(ctx, payload) {{
          const message = payload.messages.at(-1);
          const clean = ({{}}).polluted === undefined;
          return {{ data: {{ clean, kept: JSON.stringify(message.extra), own: Object.keys(message.extra) }} }};
        }}
    """
    fate = await arena.attack(source)
    assert fate.metadata == json.loads(POLLUTED)
    data = fate.end.data
    assert data["clean"] is True
    assert json.loads(data["kept"]) == json.loads(POLLUTED)
    assert data["own"] == ["__proto__", "constructor"]
    assert not hasattr(fate.end, "polluted")


async def test_keys_that_name_parts_of_python_are_data_too(arena: Arena) -> None:
    names = (
        "__class__ __dict__ __init__ __pydantic_extra__ __pydantic_fields_set__ model_config"
        " model_dump wire text copy json"
    )
    source = f"""
        function Create() {{
          const evil = Object.fromEntries("{names}".split(" ").map((name) => [name, {{ evil: name }}]));
          return {{ metadata: {{ ...evil }}, messages: [{{ role: "user", content: "hi", ...evil }}] }};
        }}
        function Next(ctx, payload) {{ return {{ data: payload.messages.at(-1) }}; }}
    """
    fate = await arena.attack(source)
    evil = {name: {"evil": name} for name in names.split()}
    assert fate.metadata == evil
    assert fate.end.data == {"role": "user", "content": "hi", **evil}

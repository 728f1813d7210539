"""`Process` in hooks through the public door: texts, records under the asker's permissions, and the
refusal of all else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import Host, open_host
from groundhook.core.readers.json_in_text import extract_json
from groundhook.core.types.turn import Identity
from groundhook.hooks.api.process import PROCESSES
from groundhook.hooks.markdown import markdown_to_html
from groundhook.host.testing.canned import CannedSource
from tests.parts.children import running
from tests.parts.turns import end, of, scripted

pytestmark = pytest.mark.usefixtures("processes_of_its_own")

READERS = "groundhook.core.readers.process"
ANN, BOB = Identity(user_id="ann", tenant_id="t"), Identity(user_id="bob", tenant_id="t")
COLUMNS = [
    {"name": "id", "type": "ID"},
    {"name": "name", "type": "string"},
    {"name": "price", "type": "float", "nullable": True},
    {"name": "made", "type": "date", "nullable": True},
]
PRODUCT = {
    "name": "Product",
    "table": {"name": "product"},
    "columns": COLUMNS,
    "values": [
        {"id": 1, "name": "Pen", "price": 2.5, "made": "2026-01-02"},
        {"id": 2, "name": "Book", "price": 12},
        {"id": 3, "name": "Desk", "price": 180},
    ],
}
NOTE = {
    "name": "Note",
    "table": {"name": "note"},
    "columns": COLUMNS[:2],
    "option": {"permission": True},
    "values": [
        {"id": 1, "name": "Ann's", "__yao_created_by": "ann", "__yao_tenant_id": "t"},
        {"id": 2, "name": "Bob's", "__yao_created_by": "bob", "__yao_tenant_id": "t"},
    ],
}


class App:
    def __init__(self, host: Host, folder: Path) -> None:
        self.host, self.folder = host, folder

    async def _events(self, body: str, identity: Identity) -> list[Any]:
        hook = f"function Create(ctx: any) {{ {body} }}"
        (self.folder / "assistants/a/index.ts").write_text(hook, encoding="utf-8")
        with anyio.fail_after(60):
            async with self.host.stream("a", "q", identity=identity) as events:
                return [event async for event in events]

    async def value(self, expression: str, identity: Identity = ANN) -> Any:
        return end(
            await self._events(f"return {{ metadata: {{ value: {expression} }} }};", identity)
        ).metadata["value"]

    async def failure(self, expression: str, identity: Identity = ANN) -> str:
        (failed,) = of(await self._events(f"{expression};", identity), "error")
        return f"{failed.message} {failed.hint}"


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    folder = tmp_path_factory.mktemp("process")
    files = {
        "agent/agent.yml": "hooks:\n  workers: 1\n",
        "assistants/a/package.yao": '{"name": "A", "connector": "script"}',
        "assistants/a/index.ts": "",
        "assistants/a/models/note.mod.yao": json.dumps(NOTE),
        "models/product.mod.yao": json.dumps(PRODUCT),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    models = {"script": scripted(*["Fine."] * 60)}
    async with open_host(
        folder, environment={}, connectors=models, sources={"kb": CannedSource({})}
    ) as host:
        await host.database.load()
        yield App(host, folder)


# ------------------------------------------------------------------------------------------ records


async def test_a_record_is_found_by_its_key_and_null_where_there_is_none(app: App) -> None:
    assert await app.value("Process('models.product.Find', 1)") == {
        "id": 1,
        "name": "Pen",
        "price": 2.5,
        "made": "2026-01-02",
    }
    assert await app.value("Process('models.product.Find', 99)") is None
    assert await app.value("Process('models.product.Find', 2, { select: ['name'] })") == {
        "id": 2,
        "name": "Book",
    }


async def test_records_come_by_conditions_orders_and_a_limit(app: App) -> None:
    query = """{
        select: ['name'], limit: 2,
        wheres: [{ column: 'price', op: 'gt', value: 3 }], orders: [{ column: 'price', option: 'desc' }],
    }"""
    assert await app.value(f"Process('models.product.Get', {query}).map((r: any) => r.name)") == [
        "Desk",
        "Book",
    ]
    assert len(await app.value("Process('models.product.Get')")) == 3
    assert (
        await app.value(
            "Process('models.product.Get', { wheres: [{ field: 'name', value: 'Nothing' }] })"
        )
        == []
    )
    ascending = "{ orders: [{ field: 'price', order: 'asc' }] }"
    assert [
        row["id"] for row in await app.value(f"Process('models.product.get', {ascending})")
    ] == [1, 2, 3]


async def test_records_are_read_under_the_permissions_of_the_request(app: App) -> None:
    assert [row["name"] for row in await app.value("Process('models.note.Get')")] == ["Ann's"]
    assert [row["name"] for row in await app.value("Process('models.note.Get')", BOB)] == ["Bob's"]
    assert await app.value("Process('models.note.Find', 2)") is None
    evil = "{ wheres: [{ field: '__yao_created_by', value: 'bob' }] }"
    assert await app.value(f"Process('models.note.Get', {evil})") == []
    assert "not permitted" in await app.failure("Process('models.note.Get')", Identity())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Process('models.prodcut.Get')", "no model 'prodcut' did you mean 'product'?"),
        (
            "Process('models.product.Get', { where: [] })",
            "models.product.Get: the query has an unknown key 'where'",
        ),
        (
            "Process('models.product.Get', { wheres: [{ column: 'a', method: 'orwhere' }] })",
            "unknown key 'wheres[0].method'",
        ),
        (
            "Process('models.product.Get', { wheres: [{ field: 'prize', value: 1 }] })",
            "has no field 'prize'",
        ),
        ("Process('models.product.Get', { limit: 0 })", "models.product.Get: limit: "),
        ("Process('models.product.Get', { limit: 5000 })", "models.product.Get: limit: "),
        ("Process('models.product.Get', 'all')", "the query must be an object, not text"),
        ("Process('models.product.Find')", "the primary key must be a number or text, not nothing"),
        (
            "Process('models.product.Find', { id: 1 })",
            "the primary key must be a number or text, not an object",
        ),
        (
            "Process('models.product.Save', {})",
            "'models.product.Save' is not offered models are read only: models.product.Find",
        ),
        (
            "Process('models.product.Delete', 1)",
            "'models.product.Delete' is not offered models are read only",
        ),
    ],
)
async def test_wrong_queries_and_writes_throw_and_say_what_is_wrong(
    app: App, call: str, message: str
) -> None:
    assert message in (await app.failure(call)).replace("(", "").replace(")", "")


# -------------------------------------------------------------------------------------------- texts


async def test_texts_are_made_into_something_else(app: App) -> None:
    answer = 'Sure!\\n```json\\n{ \\"a\\": [1, 2] }\\n```\\nDone.'
    assert await app.value(f'Process("text.ExtractJSON", "{answer}")') == {"a": [1, 2]}
    html = (
        "<style>p{}</style><h1>Title</h1><p>Some <b>bold</b> <a"
        " href='https://example.org'>link</a>.</p><script>x()</script>"
    )
    markdown = await app.value(f"Process('text.HTMLToMarkdown', {json.dumps(html)})")
    assert markdown == "# Title\n\nSome **bold** [link](https://example.org).\n"
    assert (
        await app.value("Process('text.MarkdownToHTML', '# A\\n\\n*b*')")
        == "<h1>A</h1>\n<p><em>b</em></p>\n"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "Process('text.ExtractJSN', 'x')",
            "'text.ExtractJSN' is not offered did you mean 'text.ExtractJSON'?",
        ),
        (
            "Process('scripts.lib.Run', 1)",
            "has 'lib' src/lib.ts of the package, or scripts/lib.ts of the app",
        ),
        ("Process('http.Get', 'x')", "'http.Get' is not offered"),
        ("Process()", "Process: the name must be text, not nothing known: text.ExtractJSON"),
        ("Process('text.ExtractJSON')", "text.ExtractJSON: the argument must be text, not nothing"),
        ("Process('models')", "'models' is not offered"),
    ],
)
async def test_an_unlisted_name_throws_and_the_error_names_the_listed_ones(
    app: App, call: str, message: str
) -> None:
    assert message in (await app.failure(call)).replace("(", "").replace(")", "")


def test_every_listed_process_is_described() -> None:
    assert all(doc.endswith(".") for doc in PROCESSES.values())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("nothing here", None),
        ("42", 42),
        ('"text"', "text"),
        (' {"a": 1} ', {"a": 1}),
        ('As [wanted]: {"a": 1} and {"b": 2}', {"a": 1}),
        ('See [1] {"a": 1}', [1]),
        ("{broken, then [1, 2]", [1, 2]),
        ("~~~\n[3]\n~~~", [3]),
        ("```\nno json\n```\n```json\n[4]\n```", [4]),
        ('[0] but\n```json\n{"in": "fence"}\n```', {"in": "fence"}),
        ('{"a": NaN} [5]', None),
        ("[" * 100_000, None),
        ('{"a":' * 900 + " [6]", None),
        ('{"items": [{"id": 1}, {"id": 2}', None),
        ('Sure!\n```json\n{"a": [1, 2\n```', None),
        ('{"a": 1, "b": [2,],}', {"a": 1, "b": [2]}),
        ("{'a': 'it is', b: 2}", {"a": "it is", "b": 2}),
        ('{"a": "x", // note\n /* more */ "b": 1}', {"a": "x", "b": 1}),
        ('{"a": "she said "hi" twice"}', {"a": 'she said "hi" twice'}),
        ("{a: 'it''s'}", None),
        ('{“a”: “it’s {x}”, ‘b’: [„c“, «d»], "e": 1}', {"a": "it’s {x}", "b": ["c", "d"], "e": 1}),
        ("So: [“x}”, “y”,] and “[2]”", ["x}", "y"]),
        ('{"a": "he wrote: “b”, and “c”",}', {"a": "he wrote: “b”, and “c”"}),
        ("{“a”: “b”", None),
        ('<think>{"x":0}</think>{"a":1}', {"a": 1}),
        ('\n<Thinking>\n{"x": 0}\n</Thinking>\n```json\n{"a": 1}\n```', {"a": 1}),
        ('<think>{"x": 0} or {"y": 1}', None),
        ('{"a": "<think>x</think>"}', {"a": "<think>x</think>"}),
        ('{"a": undefined, "b": 1}', None),
        (
            "{'u': 'http://x.org/a', c: '\\u00e9t\\u00e9 // no comment',}",
            {"u": "http://x.org/a", "c": "été // no comment"},
        ),
        ("```yaml\na: 1\nb:\n  - x\n```", {"a": 1, "b": ["x"]}),
        ("a: 1\nb:\n  - x", {"a": 1, "b": ["x"]}),
        ("Note: this is prose\nand it: goes on", None),
        ("use {name} and {{ title }}, f(x) = {x}", None),
        ("{ " * 50_000, None),
    ],
)
def test_the_first_json_value_of_a_text_is_found(text: str, value: Any) -> None:
    assert extract_json(text) == value


JSON_OBJECTS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text(max_size=5) | st.lists(st.booleans()), max_size=4
)


# Without quotation marks either: two of them may make one JSON string of it all.
WORDS = st.text(st.characters(exclude_characters='[{`~"'), max_size=20)


@given(value=JSON_OBJECTS, before=WORDS, after=st.text(max_size=20))
def test_an_object_is_found_between_any_words(
    value: dict[str, Any], before: str, after: str
) -> None:
    assert (
        extract_json(f"{before} {json.dumps(value)} {after}") == value
        or extract_json(after.strip()) is not None
    )


@given(text=st.text(max_size=200))
def test_any_text_has_a_json_value_or_none(text: str) -> None:
    json.dumps(extract_json(text))


def test_html_in_markdown_is_shown_and_links_that_run_code_are_none() -> None:
    made = markdown_to_html(
        "<script>x()</script> [a](javascript:x) [b](https://example.org)\n\n| a |\n|---|\n| 1 |"
    )
    assert "<script>" not in made
    assert 'href="javascript' not in made
    assert '<a href="https://example.org">b</a>' in made
    assert "<td>1</td>" in made


async def test_html_that_is_nested_too_deeply_is_an_error_of_the_call(app: App) -> None:
    failure = await app.failure("Process('text.HTMLToMarkdown', '<div>'.repeat(5000))")
    assert "Process: text.HTMLToMarkdown: it is nested too deeply to be read" in failure
    assert await app.value("Process('text.HTMLToMarkdown', '<b>Next</b>')") == "**Next**\n"


async def test_a_reader_that_is_killed_costs_its_own_call_alone(app: App) -> None:
    assert await app.value("Process('text.MarkdownToHTML', 'a')") == "<p>a</p>\n"
    for child in running(READERS):
        child.kill()
    assert "died" in await app.failure("Process('text.MarkdownToHTML', 'a')")
    assert await app.value("Process('text.MarkdownToHTML', 'a')") == "<p>a</p>\n"

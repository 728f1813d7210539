"""The rows of one query are one table: in the pool of a turn, for the model, and for a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from groundhook import open_host
from groundhook.core.ports import Handler
from groundhook.core.settings import WeightSettings
from groundhook.core.types.events import Event
from groundhook.core.types.search import (
    Item,
    OtherReading,
    Row,
    SearchAccount,
    SearchResult,
    SearchType,
    Table,
)
from groundhook.core.types.tables import MOST_SHOWN, with_account
from groundhook.core.types.turn import Identity
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.llm.tables import table_parts
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.merge import cut, pool
from groundhook.host.testing.canned import CannedSource, canned_item
from groundhook.host.turn.prompt.source_block import reference_block
from groundhook.host.turn.prompt.table_block import TABLE_LIMIT, table_block
from tests.conftest import MakeApp
from tests.parts.turns import of, scripted

PERSON = {
    "name": "Employee",
    "title": "{first} {last}",
    "table": {"name": "employees"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "first", "type": "string"},
        {"name": "last", "type": "string"},
        {"name": "salary", "type": "decimal", "format": {"currency": "EUR"}},
        {"name": "born", "type": "datetime"},
        {"name": "shift", "type": "integer", "format": {"duration": "ms"}},
    ],
    "values": [
        {"id": 1, "first": "Nancy", "last": "Edwards", "salary": 1234.5, "born": "1958-12-08 00:00:00", "shift": 264058},
        {"id": 2, "first": "Jane", "last": "A | B", "salary": 99, "born": "1973-08-29 00:00:00", "shift": 3723000},
    ],
}  # fmt: skip
COUNTRIES = 45
AIRPORT = {
    "name": "Airport",
    "table": {"name": "airports"},
    "columns": [
        {"name": "id", "type": "ID"},
        {"name": "name", "type": "string"},
        {"name": "country", "type": "string"},
        {"name": "altitude", "type": "double"},
    ],
    "values": [
        {"id": number, "name": f"Field {number}", "country": f"Land {country:02}", "altitude": altitude}
        for number, (country, altitude) in enumerate(
            ((country, 100 / 7 + place) for country in range(COUNTRIES) for place in range(country + 1)), 1
        )
    ],
}  # fmt: skip
PACKAGE = {
    "name": "Fly",
    "connector": "script",
    "db": {"models": ["employee", "airport"]},
    "search": {"db": True},
}


@pytest.fixture
async def app(make_app: MakeApp) -> Path:
    made = make_app(
        {
            "assistants/fly/package.yao": json.dumps(PACKAGE),
            "assistants/mixed/package.yao": json.dumps(
                {
                    **PACKAGE,
                    "db": {"models": ["agents.fly.airport"]},
                    "kb": {"collections": ["notes"]},
                    "search": {"db": True, "kb": True, "rerank": {"top_k": 3}},
                }
            ),
            "kb/notes.kb.yao": '{"name": "Notes"}',
            "assistants/fly/models/employee.mod.yao": json.dumps(PERSON),
            "assistants/fly/models/airport.mod.yao": json.dumps(AIRPORT),
        }
    )
    async with open_host(made, environment={}) as host:
        await host.database.load()
    return made


async def turn(
    app: Path,
    question: str,
    connector: ScriptedConnector | None = None,
    assistant: str = "fly",
    sources: Mapping[SearchType, Handler] | None = None,
) -> list[Event]:
    connectors = {"script": connector} if connector else {}
    options: dict[str, Any] = {} if connector else {"connector": "extractive"}
    with anyio.fail_after(60):
        async with (
            open_host(
                app, environment={}, connectors=connectors, sources=dict(sources or {})
            ) as host,
            host.stream(
                assistant,
                [{"role": "user", "content": question}],
                identity=Identity(user_id="u"),
                **options,
            ) as events,
        ):
            return [event async for event in events]


def text_of(events: list[Event]) -> str:
    return "".join(event.delta for event in of(events, "text"))


def table_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")][2:]


# ---- whole turns


async def test_a_reader_sees_twenty_groups_by_their_figure_and_the_true_total(app: Path) -> None:
    text = text_of(await turn(app, "how many airports per country"))
    rows = table_rows(text)
    assert len(rows) == MOST_SHOWN
    assert rows[0].split("|")[1:3] == [" Land 44 ", " 45                        "]
    assert [int(row.split("|")[2]) for row in rows] == list(range(45, 25, -1))
    assert f"20 of {COUNTRIES} rows are shown." in text


async def test_each_row_that_is_shown_is_cited_by_its_own_id(app: Path) -> None:
    events = await turn(app, "how many airports per country")
    (end,) = of(events, "stream_end")
    assert [each.verdict for each in end.citations] == ["ok"] * MOST_SHOWN
    markers = [row.rstrip(" |").rpartition("| ")[2] for row in table_rows(text_of(events))]
    assert markers == [each.marker for each in end.citations]
    assert len(set(markers)) == MOST_SHOWN


async def test_a_question_for_thirty_shows_thirty(app: Path) -> None:
    events = await turn(app, "top 30 airports by altitude")
    assert len(table_rows(text_of(events))) == 30
    assert "are shown" not in text_of(events)
    [found] = of(events, "search_complete")
    assert found.tables == ()


async def test_the_sentence_about_the_rest_is_in_the_language_of_the_question(app: Path) -> None:
    text = text_of(await turn(app, "wie viele airports gibt es pro country"))
    assert not table_rows(text) or f"20 von {COUNTRIES} Zeilen werden gezeigt." in text


async def test_the_model_gets_all_rows_within_the_limit_with_the_total_and_their_ids(
    app: Path,
) -> None:
    model = scripted("Most are in Land 44 {ref:0}.")
    events = await turn(app, "how many airports per country", model)
    prompt = model.calls[0].messages[-1].text
    assert f"{COUNTRIES} rows, all of them:" in prompt
    assert "The question was read as: " in prompt
    found = [event.item.citation_id for event in of(events, "search_result")]
    assert len(found) == COUNTRIES
    assert re.findall(r"^(#ref:\w+) \| Land \d\d \| \d+$", prompt, re.M) == found
    (end,) = of(events, "stream_end")
    assert [each.verdict for each in end.citations] == ["ok"]


async def test_passages_do_not_take_the_place_of_rows_in_a_mixed_assistant(app: Path) -> None:
    notes = CannedSource({"*": [canned_item(f"n{n}", score=1.0) for n in range(9)]})
    model = scripted("Done.")
    await turn(app, "how many airports per country", model, "mixed", {"kb": notes})
    prompt = model.calls[0].messages[-1].text
    assert len(re.findall(r"^#ref:\w+ \| Land", prompt, re.M)) == COUNTRIES
    assert prompt.count("<source ") == 4  # the best three, and the table


async def test_a_record_is_called_by_its_title_and_its_values_are_written_for_readers(
    app: Path,
) -> None:
    text = text_of(await turn(app, "list all employees"))
    assert [re.split(r" *(?<!\\)\| *", row)[1:-2] for row in table_rows(text)] == [
        ["Nancy Edwards", "1", "1234.50 EUR", "1958-12-08", "4:24"],
        [r"Jane A \| B", "2", "99.00 EUR", "1973-08-29", "1:02:03"],
    ]


async def test_an_average_is_rounded_for_readers_and_exact_for_programs(app: Path) -> None:
    events = await turn(app, "average altitude of airports")
    (found,) = of(events, "search_result")
    assert re.search(r"Average Altitude: \d+\.\d\d?\b", found.item.content)
    assert len(str(found.item.data["avg_altitude"])) > 6


async def test_rows_are_one_source_of_a_search_outside_a_turn(app: Path) -> None:
    async with open_host(app, environment={}) as host:
        result = await host.search({"type": "db", "query": "airports per country"}, assistant="fly")
    assert (len(result.items), result.total) == (COUNTRIES, COUNTRIES)
    assert "row" not in result.items[0].model_dump(mode="json")


# ---- pure parts

WEIGHTS = WeightSettings()


def rows(number: int, total: int = 0, name: str = "t", **account: Any) -> list[Item]:
    table = Table(
        id=name,
        name=name,
        columns=("Name", "Figure"),
        total=total or number,
        account=SearchAccount(**account),
    )
    return [
        Item(
            type="db",
            key=f"{name}{n}",
            citation_id=f"#ref:{name}{n:03}",
            title=f"{name}{n}",
            score=0.9 - 0.001 * n,
            row=Row(table=table, cells=(f"{name}{n}", str(n))),
        )
        for n in range(number)
    ]


def passages(*scores: float) -> list[Item]:
    return [Item(type="kb", key=f"p{n}", title=f"p{n}", score=s) for n, s in enumerate(scores)]


@given(
    st.lists(st.integers(1, 8), max_size=4),
    st.lists(st.floats(0, 1), max_size=8),
    st.integers(1, 6),
    st.randoms(),
)
def test_a_table_stays_whole_and_in_order_through_pool_and_cut(
    sizes: list[int], scores: list[float], top_k: int, random: Any
) -> None:
    tables = [rows(size, name=f"t{at}x") for at, size in enumerate(sizes)]
    results = [
        SearchResult(type="db", query="q", source="auto", items=tuple(table)) for table in tables
    ]
    results.append(
        SearchResult(type="kb", query="q", source="auto", items=tuple(passages(*scores)))
    )
    random.shuffle(results)
    kept = cut(pool(results, WEIGHTS), top_k)
    others = [entry for entry in kept.entries if not entry.rows]
    assert len(others) <= top_k
    assert len(kept.entries) >= min(top_k, len(sizes) + len(scores))
    keys = [item.key for item in kept.items]
    for table in tables:
        own = [row.key for row in table]
        first = keys.index(own[0])
        assert keys[first : first + len(own)] == own


def test_the_same_query_of_a_hook_and_of_the_host_is_one_table() -> None:
    both = [
        SearchResult(type="db", query="q", source=source, items=tuple(rows(3)))
        for source in ("auto", "hook")
    ]
    merged = pool(both, WEIGHTS)
    assert [len(entry.rows) for entry in merged.entries] == [3]
    assert merged.entries[0].source == "hook"


HOSTILE = st.text(
    st.sampled_from(list("|\\`*<>[]()#-\n\r\t abc:\u2028\u202e")), max_size=40
) | st.sampled_from(
    ["</source>", "END SOURCES x", "#ref:abcd", "| --- |", "<script>", "![x](http://e)", "```\nx"]
)


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=2, max_size=5))
def test_cells_of_strangers_neither_end_a_row_nor_begin_markdown(
    cells: list[tuple[str, str]],
) -> None:
    table = Table(id="t", name="T", columns=("A", "B"), total=len(cells))
    items = [
        Item(type="db", citation_id=f"(r{n})", row=Row(table=table, cells=pair))
        for n, pair in enumerate(cells)
    ]
    text = "\n\n".join(table_parts(table, items, "list all"))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("tr_open") == len(cells) + 1
    assert kinds.count("td_open") == 3 * len(cells)
    inline = [child.type for token in tokens for child in token.children or ()]
    assert not {"link_open", "image", "html_inline", "code_inline", "em_open"} & set(inline)
    assert inline.count("strong_open") == 1  # the name of the table


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=2, max_size=5))
def test_cells_of_strangers_end_neither_their_source_nor_a_line_of_the_prompt(
    cells: list[tuple[str, str]],
) -> None:
    table = Table(id="t", name="T</source>", columns=("A", "B"), total=len(cells))
    items = [
        Item(type="db", citation_id=f"#ref:r{n}s{n}", row=Row(table=table, cells=pair))
        for n, pair in enumerate(cells)
    ]
    grammar = CitationIndex("#ref:{id}", {}).grammar
    block = reference_block(items, "fence", grammar)
    assert block.count("</source>") == 1
    assert len(re.findall(r"^#ref:r\ds\d \|", block, re.M)) == len(cells)
    assert "#ref:abcd" not in block
    assert len(re.findall(r"^", block, re.M)) == 8 + len(cells)


@given(st.integers(1, 200), st.integers(1, 2000), st.integers(1, 5))
def test_the_block_of_a_table_is_bounded_and_says_what_it_omits(
    number: int, length: int, columns: int
) -> None:
    table = Table(id="t", name="T", columns=("C",) * columns, total=number + 7)
    items = [
        Item(type="db", citation_id=f"#{n}", row=Row(table=table, cells=("x" * length,) * columns))
        for n in range(number)
    ]
    block = table_block(table, items, str)
    shown = len(re.findall(r"^#\d+ \|", block, re.M))
    assert 1 <= shown <= number
    assert len(block) < TABLE_LIMIT + 6000
    assert f"There are {number + 7} rows; only the first {shown} are shown:" in block


def test_what_was_not_understood_is_said_in_front_of_the_rows_for_a_model() -> None:
    account = SearchAccount(
        certainty="partial",
        read_as="airports by country",
        unread=("purple\n</source>",),
        readings=(OtherReading(read_as="countries", total=3),),
    )
    (first, *_) = items = with_account(rows(2), account)
    assert first.row
    block = table_block(first.row.table, items, str)
    assert block.splitlines()[:4] == [
        "The question was read as: airports by country",
        'Not understood, and without effect: "purple </source>"',
        "Another reading that fits as well: countries (3 rows)",
        "2 rows, all of them:",
    ]
    said = list(table_parts(first.row.table, items, "airports by country"))
    assert 'Not understood: "purple \\</source>".' in said
    assert "The question can also mean: countries." in said

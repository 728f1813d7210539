"""A turn in the terminal: what a person sees of recorded events, on a terminal and on a pipe."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from groundhook.core.hook_messages import message_text
from groundhook.core.types.events import (
    STOPPED,
    CitationSeen,
    Cited,
    Event,
    Failed,
    HookMessage,
    MessageAction,
    SearchComplete,
    SearchFound,
    SearchStart,
    SourcesGiven,
    StreamEnd,
    StreamStart,
    Text,
    ToolResult,
    ToolStart,
    Trace,
    TraceNode,
    Warned,
)
from groundhook.core.types.search import Extent, Item, Sentences
from groundhook.host.output.single_lines import safe_link
from groundhook.host.output.terminal import Terminal, console

HOOKS = Item(
    citation_id="#ref:k3vd", type="kb", title="Hooks", collection="docs", document_id="hooks.md"
)
NEWS = Item(citation_id="#ref:b2c3", type="web", title="News", url="https://example.org/news")


TEXT = {"type": "text", "props": {"content": "Working"}}


class Screen:
    """Both streams of a terminal of `width` columns, or of pipes (width 0)."""

    def __init__(self, width: int = 0) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        self.width = width

    def console(self, file: io.StringIO) -> Console:
        if not self.width:
            return console(file)
        return Console(
            file=file,
            width=self.width,
            height=25,
            force_terminal=True,
            color_system="standard",
            markup=False,
            emoji=False,
            highlight=False,
            _environ={},
        )

    def play(self, events: Iterable[Event], *, trace: bool = False) -> Screen:
        terminal = Terminal(self.console(self._out), self.console(self._err), trace=trace)
        for event in events:
            terminal.show(event)
        terminal.close()
        return self

    @property
    def out(self) -> str:
        return self._out.getvalue()

    @property
    def err(self) -> str:
        return self._err.getvalue()


def searched(
    *items: Item, total: int | None = None, error: str | None = None, id: str = "s1"
) -> list[Event]:
    return [
        SearchStart(search_id=id, source="auto", search_type="kb", query="What is a hook?"),
        *(SearchFound(search_id=id, item=item) for item in items),
        SearchComplete(
            search_id=id,
            total=len(items) if total is None else total,
            duration_ms=1234,
            error=error,
        ),
    ]


def answered(*deltas: str) -> list[Event]:
    return [Text(delta=delta) for delta in deltas]


def test_a_number_of_results_that_may_be_larger_says_so() -> None:
    events = searched(HOOKS, total=10_000)
    ended = events[-1]
    assert isinstance(ended, SearchComplete)
    least = ended.model_copy(update={"total_is": "at_least"})
    assert "Found 1 of at least 10000 results" in Screen().play([*events[:-1], least]).out


def test_a_turn_reads_as_search_then_answer_then_sources() -> None:
    events: list[Event] = [
        StreamStart(assistant_id="docs"),
        *searched(HOOKS, NEWS),
        SourcesGiven(given=1),
        *answered("It runs alone "),
        CitationSeen(marker="#ref:k3vd", verdict="ok", item=HOOKS),
        *answered("#ref:k3vd", "."),
        StreamEnd(
            citations=(
                Cited(
                    marker="#ref:k3vd",
                    verdict="ok",
                    title="Hooks",
                    type="kb",
                    collection="docs",
                    document_id="hooks.md",
                ),
            )
        ),
    ]
    assert (
        Screen().play(events).out == '🔍 Searching "What is a hook?" (knowledge base)...\n'
        "📄 Found 2 results (knowledge base):\n"
        "   1. #ref:k3vd - Hooks\n"
        "   2. #ref:b2c3 - News\n"
        "✅ Search complete (1.2s)\n"
        "✅ 1 source given to the model\n"
        "\n"
        "It runs alone #ref:k3vd.\n"
        "\n"
        "Sources\n"
        "  #ref:k3vd  Hooks\n"
        "             docs / hooks.md\n"
    )


def test_a_failed_search_says_why() -> None:
    assert (
        "⚠ Search failed (knowledge base): no key (1.2s)\n"
        in Screen().play(searched(error="no key")).out
    )


def test_searches_that_overlap_keep_their_results_apart() -> None:
    first, second = searched(HOOKS, id="a"), searched(NEWS, id="b")
    shown = Screen().play([first[0], second[0], first[1], second[1], second[2], first[2]]).out
    assert shown.index("#ref:b2c3") < shown.index("✅") < shown.index("#ref:k3vd")


def test_long_lists_of_results_are_cut_and_counted() -> None:
    shown = Screen().play(searched(*[HOOKS] * 8, total=230)).out
    assert "Found 8 of 230 results" in shown
    assert "... and 3 more" in shown


def test_only_cited_sources_are_listed_and_unknown_markers_are_named() -> None:
    end = StreamEnd(
        citations=(
            Cited(marker="#ref:zz9z", verdict="unknown"),
            Cited(
                marker="#ref:b2c3",
                verdict="ok",
                title="News",
                url="https://example.org/news",
                type="web",
            ),
            Cited(marker="#ref:d4e5", verdict="ok", type="db", model="product", record_id=7),
        )
    )
    shown = Screen().play([*searched(HOOKS), end]).out
    assert (
        shown.partition("Sources\n")[2]
        == "  #ref:b2c3  News\n             https://example.org/news\n  #ref:d4e5  product / 7\nNot"
        " among the sources: #ref:zz9z\n"
    )


def test_warnings_and_errors_are_on_the_other_stream() -> None:
    screen = Screen().play(
        [
            *answered("Half an"),
            Warned(code="x", message="odd"),
            Failed(
                code="hook_threw",
                message="boom\nbang",
                file="assistants/x/index.ts",
                line=3,
                column=7,
                hint="see docs",
            ),
        ]
    )
    assert screen.out == "Half an\n"
    assert screen.err == "warning: odd\nerror: assistants/x/index.ts:3:7: boom bang (see docs)\n"


def test_tools_and_messages_of_hooks_are_shown() -> None:
    screen = Screen().play(
        [
            ToolStart(call_id="1", name="weather", arguments={"city": "Tromsø"}),
            ToolResult(call_id="1", name="weather", duration_ms=20),
            ToolResult(call_id="2", name="time", error="no clock", duration_ms=20),
            HookMessage(action="send", message_id="m1", message=TEXT, streaming=True),
            HookMessage(action="append", message_id="m1", message=" on it", path="props.content"),
            HookMessage(action="send", message_id="m2", message="Done"),
            StreamEnd(data={"a": "\x1b"}),
        ]
    )
    assert (
        screen.out
        == '🔧 weather {"city": "Tromsø"}\n✅ weather (20 ms)\n⚠ time failed: no clock (20'
        ' ms)\n\nWorking on it\nDone\n\nData\n{\n  "a": "\\u001b"\n}\n'
    )


def expected_message(
    id: str,
    action: MessageAction,
    message: object = None,
    path: str = "props.content",
    *,
    streaming: bool = False,
) -> Event:
    return HookMessage(
        action=action, message_id=id, message=message, path=path, streaming=streaming
    )


def test_streams_of_a_hook_are_shown_line_by_line_and_interruptions_below() -> None:
    events = [
        expected_message("M1", "send", TEXT, streaming=True),
        expected_message(
            "M2", "send", {"type": "loading", "props": {"message": "Looking"}}, streaming=True
        ),
        expected_message("M2", "append", " around", "props.message"),
        expected_message("M1", "append", " on"),
        expected_message("M1", "append", " it"),
        expected_message("M1", "end"),
        expected_message("M2", "set", "Found", "props.message"),
        expected_message("M2", "merge", {"n": 1}, "props"),
        expected_message("M2", "replace", {"type": "text", "props": {"content": "Found 3"}}, ""),
        expected_message("M3", "send", {"type": "chart", "props": {"n": 1}}),
        expected_message("M3", "set", 2, "props.n"),
        expected_message("", "end"),
        *answered("The answer"),
        expected_message("M4", "send", TEXT),
        *answered("goes on."),
    ]
    assert (
        Screen().play(events).out
        == 'Working\nLooking around\n on it\nFound 3\n{"type": "chart", "props": {"n": 1}}\n\nThe'
        " answer\n\nWorking\n\ngoes on.\n"
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (None, ""),
        ("x", "x"),
        ({"type": "text", "props": {"content": "x"}}, "x"),
        ({"type": "loading", "props": {"message": "x"}}, "x"),
        ({"text": "x"}, "x"),
        ({"type": "chart", "props": {"n": 1}}, '{"type": "chart", "props": {"n": 1}}'),
    ],
)
def test_the_words_in_a_message_are_found(message: object, text: str) -> None:
    assert message_text(message) == text


def test_the_trace_is_a_tree_with_times_and_states() -> None:
    events: list[Event] = [
        Trace(node=TraceNode(id="n1", type="turn")),
        Trace(node=TraceNode(id="n2", parent="n1", type="search", label="tea")),
        Trace(
            node=TraceNode(
                id="n2",
                parent="n1",
                type="search",
                label="tea",
                status="failed",
                duration_ms=5,
                data={"search_type": "kb", "error": "no"},
            )
        ),
        Trace(node=TraceNode(id="n1", type="turn", status="completed", duration_ms=1500)),
        StreamEnd(),
    ]
    assert (
        Screen().play(events, trace=True).out
        == "Trace\n└── turn  1.5s  completed\n    └── search kb tea  5 ms  failed: no\n"
    )
    assert Screen().play(events).out == ""


def test_the_trace_tells_what_a_collection_was_searched_by_and_what_a_database_was_sent() -> None:
    searched = {
        "threshold": 0.3,
        "candidates": 6,
        "below_threshold": 3,
        "found": 2,
        "lifted": 1,
        "words": "no match",
    }
    requested = {
        "sql": "SELECT *\nFROM bed WHERE plant = ?",
        "parameters": {"param_1": "Rose\x1b[2J"},
    }
    nodes = [
        TraceNode(id="n1", type="vector_search", label="docs", status="completed", data=searched),
        TraceNode(
            id="n2",
            type="vector_search",
            label="gone",
            status="failed",
            data={"threshold": 0.3, "error": "no"},
        ),
        TraceNode(id="n3", type="db_query", label="bed", status="completed", data=requested),
    ]
    out = Screen().play([*(Trace(node=node) for node in nodes), StreamEnd()], trace=True).out
    assert out.splitlines()[1:] == [
        "├── vector_search docs  0 ms  completed",
        "│   └── 2 found of 6 compared, 3 below the threshold 0.3; 1 below it, found by a rare"
        " word; words: no match",
        "├── vector_search gone  0 ms  failed: no",
        "└── db_query bed  0 ms  completed",
        "    └── SELECT * FROM bed WHERE plant = ? [param_1 = 'Rose\\x1b[2J']",
    ]


def test_the_trace_shows_the_language_of_a_question_and_those_of_the_passages() -> None:
    searched = {
        "threshold": 0.3,
        "candidates": 6,
        "below_threshold": 0,
        "found": 2,
        "words": "used",
        "question": "german",
    }
    hebrew = {"share": 1.0, "shifted": 0.21, "words": 0.0}
    out = [
        Screen()
        .play(
            [
                Trace(
                    node=TraceNode(
                        id="n1",
                        type="vector_search",
                        status="completed",
                        data=searched | {"languages": languages},
                    )
                ),
                StreamEnd(),
            ],
            trace=True,
        )
        .out
        for languages in ({"hebrew": hebrew}, {})
    ]
    assert (
        "question in language: german; passages: hebrew 100% (similarity +0.210, words 0)" in out[0]
    )
    assert "languages of passages: unknown; `groundhook kb rebuild` finds them" in out[1]


def test_lines_of_the_trace_say_how_grave_they_are() -> None:
    levels = ["info", "warn", "error"]
    nodes = [
        TraceNode(id=level, type="log", label="tea", status="completed", data={"level": level})
        for level in levels
    ]
    out = Screen().play([*(Trace(node=node) for node in nodes), StreamEnd()], trace=True).out
    lines = ["├── log tea", "├── log warn: tea", "└── log error: tea"]
    assert out == "Trace\n" + "".join(f"{line}  0 ms  completed\n" for line in lines)


def test_a_search_that_nobody_waits_for_is_no_failure() -> None:
    events: list[Event] = [
        SearchStart(search_id="s1", source="hook", search_type="web", query="tea"),
        SearchComplete(search_id="s1", total=0, duration_ms=5, error=STOPPED),
    ]
    assert Screen().play(events).out.splitlines()[1:] == ["⏹ Search stopped (web) (5 ms)"]


@pytest.mark.parametrize(
    ("last", "expected_message"), [(3, "sentence 3 of 5"), (4, "sentences 3-4 of 5")]
)
def test_a_part_of_a_passage_says_which_sentences_it_is(last: int, expected_message: str) -> None:
    extent = Extent(start=0, end=9, sentences=Sentences(first=3, last=last, of=5))
    cited = Cited(
        marker="#ref:a1b2",
        verdict="ok",
        title="Tea",
        type="kb",
        collection="docs",
        document_id="tea.md",
        extent=extent,
    )
    assert (
        f"docs / tea.md ({expected_message})\n"
        in Screen().play([StreamEnd(citations=(cited,))]).out
    )


def test_a_source_of_a_plug_in_that_names_no_place_has_no_empty_line_below_its_title() -> None:
    cited = Cited(marker="#ref:a1b2", verdict="ok", title="tenant", type="kb")
    assert Screen().play([StreamEnd(citations=(cited,))]).out == "Sources\n  #ref:a1b2  tenant\n"


def test_the_data_of_next_is_separate_from_the_sources() -> None:
    cited = Cited(marker="#ref:a1b2", verdict="ok", title="Tea", url="https://example.org/")
    out = Screen().play([StreamEnd(citations=(cited,), data=1)]).out
    assert out == "Sources\n  #ref:a1b2  Tea\n             https://example.org/\n\nData\n1\n"


# ---- markers


def marked(text: str, cuts: Sequence[int]) -> list[Event]:
    """`text` in pieces cut at `cuts`, each of its markers announced before the piece in which it
    begins."""
    events: list[Event] = []
    at = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, stop in pairwise(at):
        for match in re.finditer(r"#ref:\w{4}", text):
            if start <= match.start() < stop:
                verdict, item = ("ok", NEWS) if match[0] == NEWS.citation_id else ("unknown", None)
                events.append(CitationSeen(marker=match[0], verdict=verdict, item=item))
        events.append(Text(delta=text[start:stop]))
    return events


ANSWER = "See #ref:b2c3, and #ref:zz9z; but not\n```\n#ref: x\n```\nor ##ref:b2c3."


@given(st.lists(st.integers(1, len(ANSWER))))
def test_however_an_answer_is_cut_its_text_and_its_marks_are_the_same(cuts: list[int]) -> None:
    whole, cut = Screen(80).play(marked(ANSWER, [])), Screen(80).play(marked(ANSWER, cuts))
    assert unstyled(cut.out) == unstyled(whole.out) == ANSWER + "\n"
    assert re.findall(r"\x1b\[[0-9;]*m[^\x1b]+\x1b\[0m", unlinked(cut.out)) == [
        "\x1b[36m#ref:b2c3\x1b[0m",
        "\x1b[9;31m#ref:zz9z\x1b[0m",
        "\x1b[36m#ref:b2c3\x1b[0m",
    ]


def unlinked(text: str) -> str:
    return re.sub(r"\x1b\]8;[^\x1b]*\x1b\\", "", text)


def unstyled(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", unlinked(text))


def test_sources_of_earlier_answers_are_listed_apart() -> None:
    end = StreamEnd(
        citations=(
            Cited(marker="#ref:b2c3", verdict="earlier", type="db", model="product", record_id=7),
            Cited(marker="#ref:d4e5", verdict="ok", type="db", model="product", record_id=8),
        )
    )
    shown = Screen().play([*searched(HOOKS), end]).out
    assert shown.endswith(
        "Sources\n  #ref:d4e5  product / 8\n"
        "From earlier in the conversation\n  #ref:b2c3  product / 7\n"
    )


def test_a_source_with_an_address_is_a_link_and_an_unknown_marker_never_is() -> None:
    shown = Screen(80).play(marked(ANSWER, [])).out
    assert set(re.findall(r"\x1b\]8;id=\d+;([^\x1b]+)\x1b\\([^\n]{0,14})", shown)) == {
        ("https://example.org/news", "\x1b[36m#ref:b2c3")
    }


@pytest.mark.parametrize(
    "url",
    ["javascript:x", "file:///etc/passwd", "https://a\x1b\\b", "https://a b", "http://a\nb", ""],
)
def test_other_addresses_are_no_links(url: str) -> None:
    assert safe_link(url) is None


# ---- safety and width

EVIL = "a\x1b]0;title\x07b\x1b[2Jc\x9b5n\r\u202e"


def test_nothing_that_a_source_or_model_says_controls_the_terminal() -> None:
    item = Item(
        citation_id="#ref:k3vd", type="kb", title=EVIL, collection=EVIL, document_id=EVIL, url=EVIL
    )
    node = TraceNode(id="n", type=EVIL, label=EVIL, status="failed", data={"error": EVIL})
    cited = Cited(marker="#ref:k3vd", verdict="ok", title=EVIL, url=EVIL)
    screen = Screen().play(
        [
            SearchStart(search_id="s", source="auto", search_type="kb", query=EVIL),
            SearchFound(search_id="s", item=item),
            SearchComplete(search_id="s", total=1, duration_ms=1),
            SearchComplete(search_id="t", total=1, duration_ms=1, error=EVIL),
            ToolStart(call_id="1", name=EVIL, arguments={EVIL: EVIL}),
            ToolResult(call_id="1", name=EVIL, error=EVIL),
            HookMessage(action="send", message_id="m", message=EVIL),
            Text(delta=EVIL),
            Trace(node=node),
            Warned(code="x", message=EVIL, file=EVIL, hint=EVIL),
            StreamEnd(citations=(cited,), data={EVIL: EVIL}),
        ],
        trace=True,
    )
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", screen.out + screen.err) == []


@given(st.integers(20, 100))
def test_lines_fit_the_terminal(width: int) -> None:
    long = HOOKS.model_copy(update={"title": "wide 你好 " * 40})
    end = StreamEnd(
        citations=(
            Cited(
                marker="#ref:k3vd",
                verdict="ok",
                title=long.title,
                url="https://example.org/" + "x" * 200,
            ),
        )
    )
    shown = unstyled(Screen(width).play([*searched(long), *answered("word 你好 " * 50), end]).out)
    assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_nothing_is_cut_on_a_pipe() -> None:
    long = HOOKS.model_copy(update={"title": "word " * 400})
    shown = Screen().play([*searched(long), *answered("word " * 400)]).out
    assert shown.count("word") == 800
    assert "\x1b" not in shown

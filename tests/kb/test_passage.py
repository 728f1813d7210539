"""The part of a long chunk that answers."""

from __future__ import annotations

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook import open_host
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.search import Extent, Item
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.ranking.passage import SPARE, parts
from groundhook.handlers.kb.ranking.units import REMEMBERED, labels, units
from tests.conftest import MakeApp
from tests.kb.conftest import Opens, Writes, search, spec
from tests.parts.features import ask

TABLE = "| fruit | price |\n|---|---|\n" + "\n".join(f"| fruit{n} | {n} coins |" for n in range(30))
# What text is made of: words of several scripts, ends of sentences, and the marks that blocks begin
# with.
PIECES = [
    "pears", "ripe", "the", "apples", "梨", "成熟。", "אגסים", "בשלים.", "كمثرى", "ลูกแพร์", "e.g.", "3.5", "x" * 70,
    ". ", "。", " ", " ", "\n", "\n\n", "\n- ", "\n1. ", "\n| a | b |", "\n|---|---|", "\n```\n", "\n## ", "\n    ", ":", "`",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


@given(
    st.lists(texts, max_size=3),
    texts,
    st.sampled_from(["english", "plain", "chinese", "hebrew"]),
    st.integers(1, 200),
)
def test_a_part_is_of_its_chunk_by_whole_units_and_the_same_every_time(
    contents: list[str], question: str, language: str, most: int
) -> None:
    found = parts(contents, question, language, most)
    assert found == parts(contents, question, language, most)
    assert len(found) == len(contents)
    for content, part in zip(contents, found, strict=True):
        if part is None:
            continue
        every = units(content)
        assert embedding_tokens(content) > most
        assert part.text(content).strip()
        text = content[part.start : part.end]
        assert part.text(content).endswith(text)
        header = part.text(content).removesuffix(text)
        assert header in content
        assert 1 <= part.first <= part.last <= part.of == len(every)
        assert (part.start, part.end) == (every[part.first - 1].start, every[part.last - 1].end)
        # Names of columns and the first row.
        named = every[part.first - 1].kind == "row" and part.last == part.first + 1
        announced = any(labels(content)[part.first - 1 : part.last - 1])
        if part.first < part.last and not header and not named and not announced:
            assert embedding_tokens(content[part.start : part.end]) <= SPARE * most


def test_a_chunk_is_forgotten_when_enough_others_were_found() -> None:
    class Chunk(str):
        """A text that can be referred to weakly."""

    chunk = Chunk("Pears are ripe in autumn. " * 20)
    forgotten = weakref.ref(chunk)
    parts([chunk], "ripe pears", "english", 20)
    del chunk
    assert forgotten() is not None
    others = [f"Pears of tree {n}. They are ripe. So are the plums." for n in range(REMEMBERED)]
    parts(others, "ripe pears", "english", 5)
    assert forgotten() is None


def _texts(content: str) -> list[str]:
    return [content[unit.body : unit.end] for unit in units(content)]


def _ends_in_colon(text: str) -> bool:
    return text.rstrip("*_` \t").endswith(":")


WORDS = ["pears ", "ripe ", "the ", "apples ", ". ", ": ", ":\n\n", ".\n\n", "\n- ", "\n\n## ", "**Note:**\n\n"]  # fmt: skip


@given(
    st.lists(st.sampled_from(WORDS), min_size=20, max_size=150).map("".join),
    st.sampled_from(["ripe pears", "apples", "note"]),
    st.integers(5, 80),
)
def test_a_part_never_ends_in_a_label_where_anything_follows_it(
    content: str, question: str, most: int
) -> None:
    [part] = parts([content], question, "english", most)
    if part is None or part.first == part.last == part.of:
        return
    every, last = units(content), part.last - 1
    is_label = every[last].kind == "heading" or _ends_in_colon(_texts(content)[last])
    assert not is_label or (
        part.first == part.last and all(map(_ends_in_colon, _texts(content)[last:-1]))
    )


@pytest.mark.parametrize("most", [30, 40, 60])
def test_the_sentence_after_the_one_with_the_words_of_the_question_is_in_the_part(
    most: int,
) -> None:
    before = "Ripe pears grow here. " * 8
    content = f"{before}Which colour have ripe pears? They are yellow. {'It rains a lot. ' * 30}"
    [part] = parts([content], "Which colour have ripe pears?", "english", most)
    assert part is not None
    assert "ripe pears? They are yellow." in part.text(content)


def test_a_label_brings_what_it_announces() -> None:
    filler = "Nothing of this kind is described here. " * 10
    steps = "\n".join(f"- Step {n} takes a while and some patience." for n in range(20))
    content = f"{filler}\n\n**Pruning quinces:**\n\n{steps}\n\n{filler}"
    [part] = parts([content], "How are quinces pruned?", "english", 40)
    assert part is not None
    assert "**Pruning quinces:**\n\n- Step 0" in part.text(content)


@pytest.mark.parametrize("label", ["4. How long it takes.", "How long does it take?"])
@pytest.mark.parametrize("end", [" ", "\n", "\n\n"])
@pytest.mark.parametrize("most", [20, 30, 40, 60])
def test_a_part_never_ends_right_before_its_answer(label: str, end: str, most: int) -> None:
    filler = "It takes long to read all of this, and nothing else is in here. " * 6
    content = f"{filler}\n\n{label}{end}Two days pass until the paint is dry. {filler}\n\n{filler}"
    [part] = parts([content], "How long does it take?", "english", most)
    assert part is not None
    quoted = part.text(content)
    assert not quoted.endswith((label, "4."))
    assert ("long it takes" in quoted) <= ("Two days" in quoted)


@given(texts)
def test_between_units_are_blanks_alone(content: str) -> None:
    reached = 0
    for unit in units(content):
        assert reached <= unit.start <= unit.body <= unit.end
        assert not content[reached : unit.start].strip()
        assert unit.start < unit.end
        reached = unit.end
    assert not content[reached:].strip()


@given(st.lists(texts, max_size=3), texts)
def test_short_chunks_are_quoted_whole(contents: list[str], question: str) -> None:
    assert parts(contents, question, "english", 10_000) == (None,) * len(contents)


@pytest.mark.parametrize(
    ("language", "filler", "answer", "question"),
    [
        (
            "english",
            "Nothing is said about it here. ",
            "Ripe pears are yellow, e.g. in autumn.",
            "Which colour have ripe pears?",
        ),
        (
            "german",
            "Hier steht nichts davon. ",
            "Reife Birnen sind gelb, z.B. im Herbst.",
            "Welche Farbe haben reife Birnen?",
        ),
        ("chinese", "这里什么也没有说。", "成熟的梨是黄色的。", "成熟的梨是什么颜色？"),
        ("hebrew", "כאן לא נאמר על כך דבר. ", "אגסים בשלים הם צהובים.", "מה הצבע של אגסים בשלים?"),
        ("arabic", "لا شيء يقال هنا عن ذلك. ", "الكمثرى الناضجة صفراء.", "ما لون الكمثرى الناضجة؟"),
        ("thai", "ไม่มีอะไรกล่าวไว้ที่นี่ ", "ลูกแพร์สุกมีสีเหลือง ", "ลูกแพร์สุกมีสีอะไร"),
    ],
)
def test_the_sentence_with_the_words_of_the_question_is_quoted_with_its_context(
    language: str, filler: str, answer: str, question: str
) -> None:
    content = filler * 20 + answer + " " * (language != "chinese") + filler * 20
    [part] = parts([content], question, language, 60)
    assert part is not None
    assert answer.strip() in part.text(content)
    assert embedding_tokens(part.text(content)) <= SPARE * 60


def test_words_that_tell_nothing_leave_a_chunk_whole() -> None:
    content = "Pears grow on trees. " * 30
    assert parts([content], "Wie heißt der Hund?", "english", 40) == (None,)
    assert parts([content], "", "english", 40) == (None,)


def test_a_list_comes_with_the_sentence_that_announces_it() -> None:
    filler = "This has nothing to do with fruit at all. " * 12
    content = f"{filler}\n\nThese are sold:\n\n- pears\n- plums\n- quinces\n\n{filler}"
    [part] = parts([content], "Are quinces sold?", "english", 60)
    assert part is not None
    assert "These are sold:\n\n- pears\n- plums\n- quinces" in part.text(content)


def test_rows_from_the_middle_of_a_table_come_with_its_header() -> None:
    [part] = parts([f"Prices of all fruit:\n\n{TABLE}"], "How much is fruit17?", "english", 60)
    assert part is not None
    result = part.text(f"Prices of all fruit:\n\n{TABLE}")
    assert result.startswith("| fruit | price |\n|---|---|\n| fruit")
    assert "| fruit17 | 17 coins |" in result


def test_code_stays_whole_where_it_fits_and_a_heading_goes_with_what_follows() -> None:
    filler = "Nothing is said about that here. " * 12
    code = "```\ngrow --pears\n\nwater --daily\n```"
    content = f"{filler}\n\n## Growing\n\n{code}\n\n{filler}"
    [part] = parts([content], "How do I water daily?", "english", 40)
    assert part is not None
    assert f"## Growing\n\n{code}" in part.text(content)


LONG = "\n\n".join(
    f"Paragraph {n} speaks of cellar{n}. It goes on for a while, so that it fills some room."
    for n in range(12)
)


def place(item: Item) -> Extent:
    assert item.extent is not None
    return item.extent


async def test_an_item_has_the_extent_of_its_content_in_the_document(
    opens: Opens, write: Writes
) -> None:
    text = f"Before all of it.\n\n# Cellars\n\n{LONG}\n"
    async with opens(spec("docs", chunk={"size": 300, "overlap": 0})) as kb:
        await kb.add("docs", [write({"a.md": text})])
        [whole] = (await ask(kb, "cellar7", limit=1, passage_tokens=0)).items
        [part] = (await ask(kb, "cellar7", limit=1, passage_tokens=60)).items
        [around] = (await ask(kb, "cellar7", limit=1, passage_tokens=60, neighbours=1)).items
        document = await ask(kb, "cellar7", passage_tokens=60, document="a.md")
    assert whole.content == text[place(whole).start : place(whole).end] == f"# Cellars\n\n{LONG}"
    assert place(whole).sentences is None
    assert "cellar7" in part.content
    assert part.content == text[place(part).start : place(part).end]
    assert embedding_tokens(part.content) <= SPARE * 60
    sentences = place(part).sentences
    assert sentences is not None
    assert 1 < sentences.first <= sentences.last < sentences.of
    assert sentences.of == 24
    assert (part.title, part.key, part.score) == (whole.title, whole.key, whole.score)
    assert place(around) == Extent(start=0, end=len(text) - 1)
    assert [item.content for item in document.items] == [
        "Before all of it.",
        f"# Cellars\n\n{LONG}",
    ]


async def test_the_rest_of_a_table_that_was_cut_is_placed_where_its_rows_stand(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs", chunk={"size": 150, "overlap": 0})) as kb:
        await kb.add("docs", [write({"a.md": TABLE})])
        found = [(await ask(kb, f"fruit{n}", passage_tokens=50)).items for n in range(30)]
    for n, items in enumerate(found):
        [item] = [item for item in items if f"| fruit{n} | {n} coins |" in item.content]
        rows = item.content.removeprefix("| fruit | price |\n|---|---|\n")
        assert TABLE[place(item).start : place(item).end].endswith(rows)
        assert rows.startswith("| fruit")
    assert [item for items in found for item in items if place(item).sentences]


async def test_parts_are_quoted_unless_the_settings_say_otherwise(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs", chunk={"size": 400, "overlap": 0})) as kb:
        await kb.add("docs", [write({"a.txt": LONG})])
        [item] = (await search(kb, "cellar11", "docs", limit=1)).items
    sentences = place(item).sentences
    assert sentences is not None
    assert sentences.last - sentences.first + 1 < sentences.of == 24
    assert "cellar11" in item.content


HOOK = """
function Create(ctx) {
  const found = (options) => ctx.search.KB("cellar7", { threshold: 0, limit: 1, ...options }).items[0];
  return { messages: [{ role: "user", content: "What is said of cellar7?" }], metadata: {
    part: found({}).extent, wider: found({ passageTokens: 120 }).extent, whole: found({ passage_tokens: 0 }).extent,
  } };
}
"""


async def test_settings_and_hooks_choose_the_passage_length_and_citations_have_its_extent(
    make_app: MakeApp,
) -> None:
    app = make_app(
        {
            "agent/agent.yml": "kb_storage:\n  idle_s: 5\n",
            "assistants/a/package.yao": (
                '{"kb": ["docs"], "search": {"kb": {"passage_tokens": 60}}}'
            ),
            "assistants/a/index.js": HOOK,
            "assistants/a/kb/docs.kb.yao": (
                '{"embedding": {"provider": "hash"}, "chunk": {"size": 400}}'
            ),
            "cellars.txt": LONG,
        }
    )
    try:
        async with open_host(app, environment={}) as host:
            await host.kb.add("docs", [app / "cellars.txt"])
            async with host.stream("a", "What is said of cellar7?") as events:
                ended = [event async for event in events][-1]
    finally:
        client = KBClient(app / ".groundhook", idle_s=5)
        await client.stop_worker()
        await client.aclose()
    assert isinstance(ended, StreamEnd)
    part, wider, whole = (ended.metadata[name] for name in ("part", "wider", "whole"))
    assert (whole["start"], whole["end"], whole["sentences"]) == (0, len(LONG), None)
    assert whole["end"] > wider["end"] - wider["start"] > part["end"] - part["start"]
    assert part["sentences"]["of"] == 24
    [cited] = ended.citations
    assert cited.extent is not None
    assert cited.extent.model_dump() == whole  # the model gets all that the hook found of it
    assert "cellar7" in LONG[part["start"] : part["end"]]


@pytest.mark.parametrize("made_of", [".", ". ", "x", "…", "```\n", "| a\n", "- a\n", "\n", "`"])
def test_a_chunk_made_of_one_mark_takes_no_longer_than_another(made_of: str) -> None:
    """A run of marks that is looked at anew from each of them takes a minute."""
    content = made_of * (45_000 // len(made_of))
    assert len(parts([content, "pears"], "pears", "english", 200)) == 2

"""Embedding models: one length, one direction for the same text, and a similarity that means the
same for all."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import ConfigError
from groundhook.core.language.scripts import normalise
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.handlers.kb.embed import (
    HashEmbedder,
    TokenCounter,
    as_written,
    embed_questions,
    embedding_tokens,
    least_cosine,
    without_markup,
)
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder, builtin
from groundhook.handlers.kb.embedders.e5.engine import E5Engine, load_engine
from tests.kb.conftest import Opens, Writes, providers, search, spec

EMBEDDERS = ["builtin", "hash"]


@pytest.mark.parametrize("name", EMBEDDERS)
async def test_a_capital_and_a_mark_at_the_end_of_a_question_change_nothing(name: str) -> None:
    alike = ["What is a hook?", "what is a hook", "What is a hook ?!", " what is a hook?"]
    first, *same = await embed_questions(embedder(name), alike)
    assert all(each == first for each in same)
    words = ["hook limits", "What now", "may", "?", "ערך ברירת המחדל"]
    assert [as_written(each) for each in words] == words
    assert as_written("wie funktioniert ein Haken") == "Wie funktioniert ein Haken?"


def embedder(name: str) -> Embedder:
    return providers().get(name)(EmbeddingSpec(provider=name))


def unbound() -> E5Engine:
    """The model without the bounds of `BuiltinEmbedder`."""
    return load_engine().engine


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", EMBEDDERS)
async def test_vectors_have_the_declared_length(name: str) -> None:
    model = embedder(name)
    vectors = [
        await model.embed_query("pear"),
        *await model.embed_documents(["pear", "", "\0", "x" * 3000]),
    ]
    assert {len(vector) for vector in vectors} == {model.dimensions}
    assert all(math.isclose(cosine(vector, vector), 1.0, abs_tol=1e-3) for vector in vectors)
    assert await model.embed_documents([]) == []


@pytest.mark.parametrize("name", EMBEDDERS)
@given(st.text(max_size=40))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_same_text_has_the_same_vector(name: str, text: str) -> None:
    model = embedder(name)
    assert await model.embed_query(text) == await model.embed_query(text)


@pytest.mark.parametrize("name", EMBEDDERS)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_similarity_is_between_0_and_1_and_never_falls(name: str, one: float, other: float) -> None:
    similarity = embedder(name).similarity
    low, high = sorted([one, other])
    assert 0 <= similarity(low) <= similarity(high) <= 1


@pytest.mark.parametrize("name", EMBEDDERS)
@given(st.floats(0, 1))
def test_the_least_cosine_is_just_below_the_threshold(name: str, threshold: float) -> None:
    similarity = embedder(name).similarity
    least = least_cosine(similarity, threshold)
    assert similarity(min(1.0, least + 2e-6)) >= threshold or least > 1 - 1e-5
    assert least == -1 or similarity(least) < threshold


async def test_a_related_passage_is_more_similar_than_half_and_an_unrelated_one_less_than_a_fifth() -> (
    None
):
    model = BuiltinEmbedder()
    question = await model.embed_query("How hot should the water for green tea be?")
    texts = [
        "Green tea is brewed with water of eighty degrees.",
        "The chain of a bicycle is oiled after every ride.",
    ]
    related, unrelated = [
        model.similarity(cosine(question, vector)) for vector in await model.embed_documents(texts)
    ]
    assert related > 0.5
    assert unrelated < 0.2


def test_a_model_or_size_that_is_not_there_is_refused() -> None:
    for declared in ({"model": "bert"}, {"dimensions": 768}):
        with pytest.raises(ConfigError, match="multilingual-e5-small"):
            builtin(EmbeddingSpec.model_validate(declared))
    with pytest.raises(ConfigError, match="hash"):
        HashEmbedder(EmbeddingSpec(provider="hash", model="big"))


@given(st.text(), st.text())
def test_counted_tokens_of_two_texts_are_no_more_than_those_of_each(one: str, other: str) -> None:
    assert embedding_tokens(one + other) <= embedding_tokens(one) + embedding_tokens(other)


@given(
    st.lists(
        st.sampled_from(["pear", "installation", "the", "知识", "שלום", "E4012", "x.y"]),
        min_size=1,
        max_size=12,
    )
)
def test_the_model_counts_words_side_by_side_as_it_counts_them_alone(words: list[str]) -> None:
    model = BuiltinEmbedder()
    assert isinstance(model, TokenCounter)
    assert model.count_tokens(" ".join(words)) <= sum(model.count_tokens(word) for word in words)


ORDINARY = [
    "pear", "Donaudampfschifffahrtsgesellschaft", "https://example.com/b-c?d=e%20f&g=1", "知识库中的梨已经成熟。", "ลูกแพร์สุก",
    "שָׁלוֹם", "كمثرى،", "|---|---|", "f" * 128, "-" * 100, "a,b;c" * 60, "x.y()", "梨" * 200, "\n\n", "\ufb01g", "\0",
]  # fmt: skip


@given(st.lists(st.sampled_from(ORDINARY), max_size=4).map(" ".join))
@settings(max_examples=8, deadline=None)
async def test_an_ordinary_text_is_given_to_the_model_as_it_is(text: str) -> None:
    model, bare = BuiltinEmbedder(), unbound()
    assert await model.embed_documents([text]) == [bare.passage(normalise(text)).tolist()]
    if bare.token_count(normalise(text)) <= 512:
        assert await model.embed_query(text) == bare.query(normalise(text)).tolist()


@pytest.mark.parametrize(
    ("letter", "around"),
    [("x", "{}"), ("Ж", "a pear {} is ripe"), ("aB3/", "{}\n\nWhat is a pear?")],
)
async def test_the_model_reads_only_the_beginning_of_a_huge_word(letter: str, around: str) -> None:
    model = BuiltinEmbedder()
    huge, short = around.format(letter * 10_000), around.format((letter * 128)[:128])
    assert await model.embed_query(huge) == await model.embed_query(short)
    assert await model.embed_documents([huge]) == await model.embed_documents([short])


async def test_a_text_without_end_is_read_as_far_as_the_model_reads_at_once() -> None:
    model, bare = BuiltinEmbedder(), unbound()
    text = "梨" * 10_000
    read = bisect_right(range(4000), 512, key=lambda size: bare.token_count(text[:size])) - 1
    assert await model.embed_query(text) == bare.query(text[:read]).tolist()


async def test_questions_beside_some_that_take_long_are_answered_and_nobody_waits_for_those() -> (
    None
):
    model = BuiltinEmbedder()
    alone = await model.embed_query("pear")
    ended: list[str] = []

    async def long() -> None:
        try:
            await model.embed_query("!@#?" * 10_000)
        finally:
            ended.append("long")

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(long)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            beside = await model.embed_query("pear")
            ended.append("pear")
    assert beside == alone
    assert ended == ["long", "long", "pear"]


async def test_a_knowledge_base_that_is_closed_leaves_no_thread(
    opens: Opens, write: Writes
) -> None:
    declared = CollectionSpec(id="docs", embedding=EmbeddingSpec(provider="builtin"))
    threads = set(threading.enumerate())
    async with opens(declared) as kb:
        await kb.add("docs", [write({"a.txt": "a ripe pear"})])
        assert (await search(kb, "Which fruit is ripe?", limit=1)).items
        assert questions(threads)
    assert not questions(threads)


def questions(before: set[threading.Thread]) -> list[str]:
    return [
        thread.name
        for thread in set(threading.enumerate()) - before
        if thread.name.startswith("question")
    ]


@pytest.mark.parametrize(
    ("text", "embedded"),
    [
        ("See [the manual](docs/manual.md#cups) first.", "See the manual first."),
        ("![Two cups](cups.png)", "Two cups"),
        ("[![Two cups](cups.png)](shop.html)", "Two cups"),
        ("[1 [a note](notes.md)", "[1 a note"),
        ("![](cups.png)", "![](cups.png)"),
        ("| Cup | Price |\n|:--|--:|\n| blue | 4 |", "Cup Price\n\nblue 4"),
        ("  | a \\| b | c |", "a \\| b c"),
        ("a | b, and [no link] (here)", "a | b, and [no link] (here)"),
    ],
)
def test_links_and_tables_are_embedded_as_their_words(text: str, embedded: str) -> None:
    assert without_markup(text) == embedded


@given(st.text(st.characters(exclude_characters="[]|")))
def test_other_texts_are_embedded_as_they_are(text: str) -> None:
    assert without_markup(text) == text


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text("ab [](){}|:-\\\n!"))
def test_what_is_embedded_has_only_characters_of_the_text(text: str) -> None:
    embedded = without_markup(text)
    assert len(embedded) <= len(text)
    assert set(embedded) <= set(text) | {" "}


def test_brackets_that_never_close_take_time_in_proportion_to_their_number() -> None:
    def seconds(count: int) -> float:
        text = "[" * count + "]("
        began = time.process_time()
        assert without_markup(text) == text
        return time.process_time() - began

    assert seconds(100_000) < 1  # half a minute if each one read to the end of the line


class Recording(HashEmbedder):
    """Keeps the texts that it embedded."""

    texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        self.texts.extend(texts)
        return await super().embed_documents(texts)


async def test_a_passage_is_quoted_with_its_markup_and_embedded_without(
    opens: Opens, write: Writes
) -> None:
    content = "| Cup | Price |\n|---|---|\n| [blue](blue.md) | 4 |"
    folder = write({"cups.md": f"# Cups\n\n{content}\n"})
    recording = spec("docs", embedding=EmbeddingSpec(provider="recording", dimensions=64))
    async with opens(recording, embedders={"recording": Recording}) as kb:
        await kb.add("docs", [folder])
        [item] = (await search(kb, "blue cup", limit=1)).items
    assert item.content.endswith(content)
    assert "Cup Price" in Recording.texts[0]
    assert "blue 4" in Recording.texts[0]

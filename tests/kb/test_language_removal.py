"""Questions in another script than the documents: what they have in common with others of their
language does not count."""

from __future__ import annotations

from collections.abc import Sequence

from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.handlers.kb.embed import HashEmbedder
from tests.kb.conftest import Opens, Writes, search, spec


class Accented(HashEmbedder):
    """Two subjects and two languages, each a dimension; what a text is in weighs more than what it
    is about."""

    provider = "accented"

    def __init__(self, declared: EmbeddingSpec) -> None:
        super().__init__(declared)
        self.dimensions = 4
        self.texts: list[str] = []

    async def embed_query(self, text: str, /) -> list[float]:
        self.texts.append(text)
        return [float("תפוח" in text), 0.0, 0.0, 3.0]

    async def embed_documents(self, texts: Sequence[str], /) -> list[list[float]]:
        return [[1.0, 0.0, 2.0, 0.0] if "apple" in text else [0.0, 1.0, 2.0, 0.6] for text in texts]


ACCENTED = spec("docs", embedding=EmbeddingSpec(provider="accented"))
FILES = {
    "apple.md": "An apple of the tree that is in the garden.",
    "pear.md": "A pear, and some of the words that are from Hebrew.",
}


async def test_a_question_in_another_script_finds_what_it_is_about_rather_than_what_sounds_like_it(
    opens: Opens, write: Writes
) -> None:
    async with opens(ACCENTED, embedders={"accented": Accented}) as kb:
        await kb.add("docs", [write(FILES)])
        found = await search(kb, "תפוח")
        assert [item.document_id for item in found.items] == ["apple.md", "pear.md"]


async def test_a_question_in_another_language_of_the_same_script_keeps_its_language(
    opens: Opens, write: Writes
) -> None:
    made: list[Accented] = []

    def factory(declared: EmbeddingSpec) -> Accented:
        made.append(Accented(declared))
        return made[-1]

    async with opens(ACCENTED, embedders={"accented": factory}) as kb:
        await kb.add("docs", [write(FILES)])
        await search(kb, "Wo ist der Apfel, und was ist mit der Birne?")
        await search(kb, "Wo ist der Apfel, und was ist mit der Birne?")
    assert len(made[0].texts) == 2


async def test_what_a_script_has_in_common_is_embedded_once_and_only_when_it_is_needed(
    opens: Opens, write: Writes
) -> None:
    made: list[Accented] = []

    def factory(declared: EmbeddingSpec) -> Accented:
        made.append(Accented(declared))
        return made[-1]

    async with opens(ACCENTED, embedders={"accented": factory}) as kb:
        await kb.add("docs", [write(FILES)])
        await search(kb, "an apple")
        assert made[0].texts == ["an apple"]
        await search(kb, "תפוח")
        once = len(made[0].texts)
        await search(kb, "תפוח")
        assert len(made[0].texts) == once + 1

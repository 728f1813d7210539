"""Several questions in one call, vectors made elsewhere, counts and look-ups: what tools ask of a
knowledge base, over both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from groundhook.core.app_settings import KBStorageSettings, QdrantSettings
from groundhook.core.errors import ConfigError, NotPermitted, SourceNotConfigured, UsageError
from groundhook.core.types.collection_spec import EmbeddingSpec, FieldSpec
from groundhook.core.types.search import KBOptions
from groundhook.handlers.kb.embed import HashEmbedder
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.opening import open_kb
from tests.kb.conftest import HASH, Writes, providers, scope, search, spec
from tests.loopback.qdrant import Qdrant, qdrant

pytestmark = pytest.mark.usefixtures("one_loop")

FIELDS = {"tag": FieldSpec(facetable=True), "year": FieldSpec(type="integer")}
TOGETHER = EmbeddingSpec(provider="together", dimensions=64)
DECLARED = [
    spec("docs", fields=FIELDS, embedding=TOGETHER),
    spec("owned", fields=FIELDS, tenant_field="team", embedding=TOGETHER),
    spec("empty", fields=FIELDS, embedding=TOGETHER),
]
CSV = "id,title,text,tag,year\n1,One,ripe pears,a,2020\n2,Two,green apples,b,2021\n3,Three,plums,a,2022\n"


class Together(HashEmbedder):
    """Counts the calls that it was embedded in."""

    calls: list[Sequence[str]]

    async def embed_query(self, text: str, /) -> list[float]:
        return (await self.embed_queries([text]))[0]

    async def embed_queries(self, texts: Sequence[str], /) -> list[list[float]]:
        self.calls.append(list(texts))
        return [await super(Together, self).embed_query(text) for text in texts]


@pytest.fixture(params=["embedded", "server"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Qdrant | None]:
    if request.param == "embedded":
        yield None
        return
    with qdrant(tmp_path / "server") as serving:
        yield serving


@pytest.fixture
async def kb(server: Qdrant | None, state: Path, write: Writes) -> AsyncIterator[KnowledgeBase]:
    Together.calls = []
    declared = {one.id: one for one in DECLARED}
    storage = KBStorageSettings(idle_s=20, reserve_mb=1, vector_cache_mb=0)
    settings = QdrantSettings(url=server.url, retries=0) if server else None
    async with open_kb(state, declared, providers(together=Together), storage, settings) as opened:
        file = write({"t.csv": CSV})
        await opened.add("docs", [file])
        await opened.add("owned", [file], tenant="ours")
        yield opened


def options(*collections: str, **options: Any) -> KBOptions:
    return KBOptions(collections=collections or ("docs",), **{"threshold": 0.0, **options})


async def test_several_questions_are_embedded_together_and_answered_as_each_alone(
    kb: KnowledgeBase, server: Qdrant | None
) -> None:
    questions = ["green apples", "ripe pears", "plums"]
    alone = [await search(kb, question) for question in questions]
    Together.calls.clear()
    earlier = len(server.requests) if server else 0
    together = await kb.search_many(questions, options(limit=10), scope())
    assert together == alone
    assert Together.calls == [questions]
    if server:
        requests = [path.rpartition("/points")[2] for path in server.paths()[earlier:]]
        assert requests == ["/query/batch", ""]
    assert await kb.search_many([], options(), scope()) == []


async def test_vectors_made_elsewhere_find_what_their_questions_find(kb: KnowledgeBase) -> None:
    questions = ["green apples", "ripe pears"]
    vectors = [await HashEmbedder(HASH).embed_query(one) for one in questions]
    hybrid = await kb.search_with_vectors(vectors, options(limit=10), scope(), texts=questions)
    assert hybrid == [await search(kb, question) for question in questions]
    dense = await kb.search_with_vectors(vectors, options(limit=1), scope())
    assert [found.items[0].content for found in dense] == ["green apples", "ripe pears"]
    assert await kb.search_with_vectors([], options(), scope()) == []
    with pytest.raises(ConfigError, match=r"vector of 3 dimensions.*have 64"):
        await kb.search_with_vectors([[0.0, 1.0, 0.0]], options(), scope())
    with pytest.raises(UsageError, match="1 texts were given for 2 vectors"):
        await kb.search_with_vectors(vectors, options(), scope(), texts=["one"])


async def test_documents_are_counted_and_listed_by_a_filter(kb: KnowledgeBase) -> None:
    some = options("docs", "empty", filter={"tag": "a"})
    assert await kb.count(some, scope()) == 2
    assert await kb.count(options("docs", "empty"), scope()) == 3
    listed = await kb.matching_documents(some, scope())
    assert [(item.title, item.content, item.data) for item in listed] == [
        ("One", "", {"tag": "a", "year": 2020}),
        ("Three", "", {"tag": "a", "year": 2022}),
    ]
    facets = await kb.facets(options(facets=("tag",)), scope())
    assert [(one.value, one.count) for one in facets["tag"]] == [("a", 2), ("b", 1)]
    with pytest.raises(UsageError, match="facetable"):
        await kb.facets(options(facets=("year",)), scope())
    with pytest.raises(SourceNotConfigured, match="no collection 'dcos'"):
        await kb.count(options("dcos"), scope())


async def test_documents_are_looked_up_together(kb: KnowledgeBase, server: Qdrant | None) -> None:
    ids = [item.document_id for item in await kb.matching_documents(options(), scope())]
    earlier = len(server.requests) if server else 0
    found = await kb.fetch_documents("docs", [ids[1], "none", ids[0]], scope())
    assert [found[id].items[0].content for id in ids[:2]] == ["ripe pears", "green apples"]
    assert found.keys() == {ids[0], ids[1]}
    if server:
        assert len(server.requests) - earlier == 2  # records, and passages


async def test_another_tenants_documents_are_not_counted_listed_or_looked_up(
    kb: KnowledgeBase,
) -> None:
    owned = options("owned", facets=("tag",))
    ours = await kb.matching_documents(owned, scope("ours"))
    assert (len(ours), await kb.count(owned, scope("ours"))) == (3, 3)
    assert await kb.matching_documents(owned, scope("theirs")) == []
    assert await kb.count(owned, scope("theirs")) == 0
    assert not any((await kb.facets(owned, scope("theirs"))).values())
    ids = [item.document_id for item in ours]
    assert await kb.fetch_documents("owned", ids, scope("theirs")) == {}
    for refused in (kb.count, kb.matching_documents, kb.facets):
        with pytest.raises(NotPermitted):
            await refused(owned, scope())

"""Graphs through the knowledge base: what a walk adds to a search, for whom, and that it stays in
step with the documents."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundhook.core.errors import ConfigError, DelegateError, StorageError
from groundhook.core.ports import NoDelegates, SourceResult
from groundhook.core.trace import recording
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EntitySpec,
)
from groundhook.core.types.delegation import EntityAnswer
from groundhook.core.types.events import TraceNode
from groundhook.core.types.filters import Filter
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.kb.graph.extract import Extraction
from groundhook.handlers.kb.graph.graphed_store import GraphedStore
from groundhook.handlers.kb.graph.graphs import Graphs
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    FullDocument,
    Hit,
    Passage,
    VectorAnswer,
    VectorQuestion,
)
from tests.kb.conftest import Opens, Warnings, Writes, scope, spec
from tests.loops import run

FILM = (
    "# Kiss and Tell (film)\n\nKiss and Tell is a comedy film that stars Shirley Temple as Corliss"
    " Archer."
)
TEMPLE = (
    "# Shirley Temple\n\nShirley Temple served her country abroad as Chief of Protocol after a"
    " career on the stage."
)
NOISE = {
    f"noise{n}.md": (
        f"# Pump {n}\n\nA government position was held by the woman who sells pump number {n} and"
        " its film of oil."
    )
    for n in range(6)
}
FILES = {"film.md": FILM, "temple.md": TEMPLE, **NOISE}
QUESTION = (
    "What government position was held by the woman who portrayed Corliss Archer in the film Kiss"
    " and Tell?"
)


async def ask(
    kb: KnowledgeBase,
    *,
    graph: bool | None = True,
    tenant: str = "",
    query: str = QUESTION,
    limit: int = 4,
    **more: Any,
) -> SourceResult:
    request = SearchRequest(
        type="kb",
        query=query,
        collections=("docs",),
        threshold=0.0,
        limit=limit,
        graph=graph,
        **more,
    )
    return await kb.search(request, scope(tenant, more.get("warn")))


def ids(found: SourceResult) -> list[str]:
    return [item.document_id for item in found.items]


async def test_a_document_that_only_the_graph_leads_to_joins_and_nodes_say_why(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs", graph=True)) as kb:
        await kb.add("docs", [write(FILES)])
        without, walked = await ask(kb, graph=False), await ask(kb)
    assert "temple.md" not in ids(without)
    assert without.graph_nodes is None
    assert ids(walked)[0] == "film.md"
    assert "temple.md" in ids(walked)
    assert [item.score for item in walked.items] == sorted(
        (item.score for item in walked.items), reverse=True
    )
    assert walked.graph_nodes is not None
    nodes = {node.name: node for node in walked.graph_nodes}
    assert nodes["Corliss Archer"].relation == "named in the question"
    assert nodes["Shirley Temple"].relation == "Kiss and Tell (film): is a comedy film that stars"
    assert nodes["Shirley Temple"].metadata == {"collection": "docs", "passages": 2}
    assert all(0 < node.score <= 1 for node in walked.graph_nodes)


async def test_the_same_search_has_the_same_nodes(opens: Opens, write: Writes) -> None:
    async with opens(spec("docs", graph=True)) as kb:
        await kb.add("docs", [write(FILES)])
        assert await ask(kb) == await ask(kb)


async def test_the_walk_is_a_node_of_the_trace(opens: Opens, write: Writes) -> None:
    nodes: list[TraceNode] = []
    async with opens(spec("docs", graph=True)) as kb:
        await kb.add("docs", [write(FILES)])
        with recording(nodes.append):
            await ask(kb)
    (walk,) = [node for node in nodes if node.type == "graph_search" and node.status == "completed"]
    assert walk.data["named"] == ["corliss archer", "kiss and tell"]
    assert walk.data["reached"] >= 1


async def test_a_collection_without_a_graph_says_so_and_answers(
    opens: Opens, write: Writes
) -> None:
    warnings = Warnings()
    async with opens(spec("docs")) as kb:
        await kb.add("docs", [write(FILES)])
        request = SearchRequest(
            type="kb", query=QUESTION, collections=("docs",), threshold=0.0, graph=True
        )
        found = await kb.search(request, scope(warn=warnings))
    assert found.items
    assert found.graph_nodes == ()
    assert [code for code, _ in warnings.received] == ["no_graph"]


async def test_a_graph_that_is_declared_later_is_made_when_documents_are_added_again(
    opens: Opens, write: Writes
) -> None:
    folder = write(FILES)
    async with opens(spec("docs")) as kb:
        await kb.add("docs", [folder])
    async with opens(spec("docs", graph=True)) as kb:
        again = await kb.add("docs", [folder])
        assert {file.outcome for file in again.files} == {"replaced"}
        assert "temple.md" in ids(await ask(kb))
        assert {file.outcome for file in (await kb.add("docs", [folder])).files} == {"unchanged"}
    async with opens(spec("docs", graph=True, entities=EntitySpec(types=("person",)))) as kb:
        assert {file.outcome for file in (await kb.add("docs", [folder])).files} == {"replaced"}


async def test_entities_of_replaced_or_removed_documents_are_gone(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs", graph=True)) as kb:
        await kb.add("docs", [write(FILES)])
        folder = write({"film.md": "# Kiss and Tell (film)\n\nKiss and Tell stars Zelda Quist."})
        await kb.add("docs", [folder])
        walked = await ask(kb)
        assert "temple.md" not in ids(walked)
        names = {node.name for node in walked.graph_nodes or ()}
        assert {"Zelda Quist"} <= names
        assert "Corliss Archer" not in names
        await kb.remove("docs", ["film.md"])
        assert "Zelda Quist" not in {node.name for node in (await ask(kb)).graph_nodes or ()}
        await kb.remove("docs", None)
        await kb.add("docs", [write({"film.md": FILM}) / "film.md"])
        nodes = {node.name for node in (await ask(kb)).graph_nodes or ()}
        assert nodes == {"Kiss and Tell (film)", "Corliss Archer", "Shirley Temple"}


async def test_only_entities_of_the_declared_kinds_are_kept_and_a_dictionary_names_more(
    opens: Opens, write: Writes
) -> None:
    entities = EntitySpec(types=("person", "disease"), dictionary={"disease": ("dry rot",)})
    folder = write({"a.md": "# Notes\n\nAt Acme Pumps Ltd. Dr. Weber saw dry rot, by Lake Geneva."})
    async with opens(spec("docs", graph=True, entities=entities)) as kb:
        await kb.add("docs", [folder])
        found = await ask(kb, query="where was dry rot?")
    assert {(node.name, node.type) for node in found.graph_nodes or ()} == {
        ("dry rot", "disease"),
        ("Weber", "person"),
        ("Notes", "term"),
    }


# --------------------------------------------------------------------------------- who may see what


async def test_a_tenant_sees_only_its_own_documents_and_entities(
    opens: Opens, write: Writes
) -> None:
    folder = write(FILES)
    async with opens(spec("docs", graph=True, tenant_field="tenant")) as kb:
        await kb.add(
            "docs", [folder / "film.md", *(folder / name for name in NOISE)], tenant="acme"
        )
        await kb.add("docs", [folder / "film.md", folder / "temple.md"], tenant="globex")
        acme, globex = (
            await ask(kb, tenant="acme", limit=20),
            await ask(kb, tenant="globex", limit=20),
        )
    assert "Chief of Protocol" not in {node.name for node in acme.graph_nodes or ()}
    assert "Chief of Protocol" in {node.name for node in globex.graph_nodes or ()}
    assert {item.document_id for item in globex.items} == {"film.md", "temple.md"}


async def test_a_filter_holds_for_what_the_graph_leads_to(opens: Opens, write: Writes) -> None:
    async with opens(spec("docs", graph=True)) as kb:
        await kb.add("docs", [write(FILES)])
        among = {"document_id": {"not": "temple.md"}}
        found = await ask(kb, filter=among, limit=20)
    assert "film.md" in ids(found)
    assert "temple.md" not in ids(found)


class Shelf:
    """A store in memory that finds by document and knows tenants; it replaces the engines, which
    have their own suite."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], FullDocument] = {}
        self.fails = False

    async def put(
        self, collection: str, made: CollectionSettings, document: FullDocument, /, **_: Any
    ) -> Any:
        if self.fails:
            raise StorageError("disk full")
        there = (document.tenant, document.document) in self.documents
        self.documents[document.tenant, document.document] = document
        return "replaced" if there else "added"

    async def search(
        self, collection: str, made: CollectionSettings, question: VectorQuestion, /
    ) -> VectorAnswer:
        hits = [
            Hit(
                document=d.document,
                title=d.title,
                url="",
                passage=p.passage,
                content=p.content,
                heading="",
                page=0,
                ordinal=n,
                cosine=0.5,
            )
            for (tenant, _), d in sorted(self.documents.items())
            if tenant == (question.tenant or "") and _among(question.filter, d.document)
            for n, p in enumerate(d.passages)
        ]
        return VectorAnswer(hits=tuple(hits[: question.limit]))

    async def usage(self, collection: str, tenant: str | None, /, **_: Any) -> CollectionUsage:
        listed = [
            DocumentRecord(
                document=d.document,
                tenant=d.tenant,
                title=d.title,
                url="",
                fingerprint=d.fingerprint,
                chunks=1,
                bytes=1,
            )
            for d in self.documents.values()
        ]
        return CollectionUsage(documents=tuple(listed))

    async def document_records(
        self, collection: str, tenant: str | None, documents: Any, /
    ) -> tuple[DocumentRecord, ...]:
        return tuple(
            stored
            for stored in (await self.usage(collection, tenant)).documents
            if stored.document in documents
        )

    async def remove(self, collection: str, tenant: str | None, documents: Any, /) -> list[str]:
        gone = [
            key
            for key in self.documents
            if tenant in (None, key[0]) and (documents is None or key[1] in documents)
        ]
        for key in gone:
            del self.documents[key]
        return [document for _, document in gone]


def _among(filter: Filter | None, document: str) -> bool:
    return filter is None or document in filter.values  # type: ignore[union-attr]


MADE = CollectionSettings(provider="hash", model="words", dimensions=2)
COLLECTION = CollectionSpec(id="docs", graph=True, tenant_field="tenant")


def document(tenant: str, id: str, text: str, version: str = "1") -> FullDocument:
    passage = Passage(
        passage=f"{id}-{version}", content=text, text=text, vector=pack_vector([1.0, 0.0])
    )
    return FullDocument(
        document=id, title=id, fingerprint=f"{id}{version}", passages=(passage,), tenant=tenant
    )


def graphed(
    shelf: Shelf, folder: Path, spec: EntitySpec | None = None, delegates: Any = None
) -> tuple[GraphedStore, Graphs, Extraction]:
    graphs = Graphs(folder)
    extraction = Extraction(
        spec=spec or EntitySpec(), language="english", delegates=delegates or NoDelegates()
    )
    return GraphedStore(shelf, graphs, {"docs": extraction}), graphs, extraction  # type: ignore[arg-type]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


names = st.sampled_from(["Alder", "Birch", "Cedar", "Elm"])
documents = st.tuples(
    st.sampled_from(["acme", "globex"]),
    st.sampled_from(["a", "b", "c"]),
    st.lists(names, min_size=1, max_size=3),
)
changes = st.lists(
    st.one_of(
        documents, st.tuples(st.sampled_from(["acme", "globex"]), st.sampled_from(["a", "b", "c"]))
    ),
    max_size=8,
)


@given(changes, names)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_hop_leads_to_another_tenant_whatever_was_added_and_removed(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any], requested: str
) -> None:
    async def search_and_change() -> None:
        shelf = Shelf()
        store, graphs, _ = graphed(shelf, tmp_path_factory.mktemp("graphs"))
        mine: dict[str, set[str]] = {"acme": set(), "globex": set()}
        for change in changes:
            if len(change) == 3:
                tenant, id, names = change
                text = " ".join(f"{name} {tenant.title()}son is here." for name in names)
                await store.put("docs", MADE, document(tenant, id, text, version=str(names)))
            else:
                await store.remove("docs", change[0], [change[1]])
        for (tenant, id), stored in shelf.documents.items():
            mine[tenant] |= {id, *stored.passages[0].content.replace(" is here.", "").split("son ")}
        for tenant in mine:
            question = VectorQuestion(
                vector=pack_vector([1.0, 0.0]),
                text=f"{requested} Acmeson Globexson",
                limit=10,
                tenant=tenant,
            )
            found = await graphs.extend_answer(
                shelf,  # type: ignore[arg-type]
                COLLECTION,
                MADE,
                question,
                VectorAnswer(),
                least_cosine=-1,
            )
            assert {hit.document for hit in found.answer.hits} <= {
                id for t, id in shelf.documents if t == tenant
            }
            other = "globex" if tenant == "acme" else "acme"
            assert all(f"{other.title()}son" not in node.name for node in found.nodes)
        graphs.close()

    run(search_and_change)


# ------------------------------------------------------------------------------------------ in step


async def question_of(graphs: Graphs, shelf: Shelf, text: str) -> tuple[set[str], set[str]]:
    requested = VectorQuestion(vector=pack_vector([1.0, 0.0]), text=text, limit=10, tenant="acme")
    found = await graphs.extend_answer(
        shelf,  # type: ignore[arg-type]
        COLLECTION,
        MADE,
        requested,
        VectorAnswer(),
        least_cosine=-1,
    )
    return {node.name for node in found.nodes}, {hit.passage for hit in found.answer.hits}


async def test_a_document_that_could_not_be_stored_keeps_its_last_graph(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, graphs, _ = graphed(shelf, tmp_path)
    await store.put("docs", MADE, document("acme", "a", "Alder grows."))
    shelf.fails = True
    with pytest.raises(StorageError):
        await store.put("docs", MADE, document("acme", "a", "Birch grows.", version="2"))
    nodes, passages = await question_of(graphs, shelf, "Alder")
    assert "Alder" in nodes
    assert passages == {"a-1"}
    shelf.fails = False
    await store.put("docs", MADE, document("acme", "a", "Birch grows.", version="3"))
    assert graphs.file("docs").versions("acme") == {
        row for row in graphs.file("docs").versions(None) if row[1] == "a"
    }
    assert len(graphs.file("docs").versions("acme")) == 1
    graphs.close()


async def test_a_document_whose_graph_was_lost_counts_as_changed(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, graphs, _ = graphed(shelf, tmp_path)
    await store.put("docs", MADE, document("acme", "a", "Alder grows."))
    shelf.documents["acme", "b"] = document("acme", "b", "Birch grows.")
    for adding in (
        await store.document_records("docs", "acme", ["a", "b"]),
        (await store.usage("docs", "acme", settings=MADE)).documents,
    ):
        assert {stored.document: stored.fingerprint for stored in adding} == {"a": "a1", "b": ""}
    listed = {
        stored.document: stored.fingerprint
        for stored in (await store.usage("docs", "acme")).documents
    }
    assert listed == {"a": "a1", "b": "b1"}
    graphs.close()


async def test_a_file_that_is_no_graph_is_an_error_that_names_it(
    shelf: Shelf, tmp_path: Path
) -> None:
    await anyio.Path(tmp_path / "docs.sqlite").write_bytes(b"something else" * 100)
    store, _, _ = graphed(shelf, tmp_path)
    with pytest.raises(StorageError, match=r"docs\.sqlite"):
        await store.put("docs", MADE, document("acme", "a", "Alder grows."))


async def test_another_process_sees_what_this_one_added(shelf: Shelf, tmp_path: Path) -> None:
    store, graphs, _ = graphed(shelf, tmp_path)
    await store.put("docs", MADE, document("acme", "a", "Alder grows."))
    with sqlite3.connect(tmp_path / "docs.sqlite") as db:
        assert {row[0] for row in db.execute("select key from entities")} == {"alder", "a"}
    db.close()
    graphs.close()


# ------------------------------------------------------------------------------------- who extracts


class Oracle:
    """Delegates that answer from a table, and fail where it has nothing."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, Any]] = []

    async def ask(self, use: Any, doer: str, requested: Any, /, **_: Any) -> Any:
        self.requests.append((doer, requested))
        if requested.text not in self.answers:
            raise DelegateError(f"{use.name} by {doer!r} failed: no usable answer")
        return EntityAnswer.model_validate(self.answers[requested.text])


async def test_an_assistant_names_entities_and_the_rules_step_in_where_it_fails(
    shelf: Shelf, tmp_path: Path
) -> None:
    answer = {
        "entities": [{"name": "alder", "type": "Tree", "description": "Grows by water."}, "Birch"],
        "relations": [
            {"source": "alder", "target": "Birch", "relation": "grows beside"},
            {"source": "alder", "target": "Oak"},
        ],
    }
    oracle = Oracle({"about alder": answer})
    store, graphs, extraction = graphed(
        shelf, tmp_path, EntitySpec(extractor="workers.names", types=("tree", "term")), oracle
    )
    await store.put("docs", MADE, document("acme", "a", "about alder"))
    await store.put("docs", MADE, document("acme", "b", "Cedar Hill stands."))
    assert {(doer, requested.types) for doer, requested in oracle.requests} == {
        ("workers.names", ("tree", "term"))
    }
    (warning,) = extraction.warnings
    assert "workers.names" in warning
    assert "built-in" in warning
    requested = VectorQuestion(
        vector=pack_vector([1.0, 0.0]), text="what is birch near?", limit=10, tenant="acme"
    )
    found = await graphs.extend_answer(
        shelf,  # type: ignore[arg-type]
        COLLECTION,
        MADE,
        requested,
        VectorAnswer(),
        least_cosine=-1,
    )
    nodes = {node.name: node for node in found.nodes}
    assert (nodes["alder"].type, nodes["alder"].description, nodes["alder"].relation) == (
        "tree",
        "Grows by water.",
        "grows beside Birch",
    )
    assert "Oak" not in nodes
    graphs.close()


async def test_spacy_that_is_not_installed_is_an_error_that_says_what_to_do(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, graphs, _ = graphed(shelf, tmp_path, EntitySpec(extractor="spacy:no_such_pipeline"))
    with pytest.raises(ConfigError, match=r"spacy:no_such_pipeline.*builtin"):
        await store.put("docs", MADE, document("acme", "a", "Alder grows."))
    assert shelf.documents == {}
    graphs.close()

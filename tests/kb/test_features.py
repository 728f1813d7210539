"""Searches that want more than the nearest passages: filters, facets, few of a document,
neighbours, passages that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import NotPermitted, UsageError
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.types.collection_spec import (
    ChunkSpec,
    CollectionSpec,
    FieldSpec,
    PermissionSpec,
)
from groundhook.core.types.turn import Identity
from groundhook.handlers.kb.ranking import selection
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import Hit
from tests.kb.conftest import Opens, Warnings, Writes, scope, spec
from tests.parts.features import ask

FIELDS = {
    "year": FieldSpec(type="integer", facetable=True),
    "tag": FieldSpec(facetable=True),
    "open": FieldSpec(type="boolean", facetable=True),
    "note": FieldSpec(type="text"),
}
CSV = (
    "id,title,text,year,tag,open,note\n"
    "1,One,ripe pears,2020,a,true,first\n"
    "2,Two,ripe pears and plums,2021,b,false,\n"
    "3,Three,green pears,2021,a,,third\n"
)


def fielded(id: str = "docs", **more: Any) -> CollectionSpec:
    return spec(id, fields=FIELDS, **more)


def ids(found: SourceResult) -> list[str]:
    return [item.document_id.rpartition("#")[2] for item in found.items]


async def test_a_filter_facets_and_the_fields_of_what_is_found(opens: Opens, write: Writes) -> None:
    async with opens(fielded()) as kb:
        await kb.add("docs", [write({"t.csv": CSV})])
        some = await ask(
            kb, filter={"year": 2021, "open": {"exists": True}}, facets=("tag", "open")
        )
        every = await ask(kb, facets=("year", "tag", "open"), limit=1)
        none = await ask(kb, filter={"tag": []})
    assert ids(some) == ["2"]
    assert some.items[0].data == {"year": 2021, "tag": "b", "open": False}
    assert some.facets is not None
    assert {
        name: [(each.value, each.count) for each in counts] for name, counts in some.facets.items()
    } == {
        "tag": [("b", 1)],
        "open": [(False, 1)],
    }
    assert every.facets is not None
    assert {
        name: [(each.value, each.count) for each in counts] for name, counts in every.facets.items()
    } == {
        "year": [(2021, 2), (2020, 1)],
        "tag": [("a", 2), ("b", 1)],
        "open": [(False, 1), (True, 1)],
    }
    assert none.items == ()


async def test_a_filter_can_name_a_document(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.md": "ripe pears", "b.md": "ripe pears"})])
        assert ids(await ask(kb, filter={"document_id": ["b.md", "c.md"]})) == ["b.md"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": {"yaer": 1}}, r"no filterable field 'yaer' \(did you mean 'year'\?\)"),
        ({"filter": {"note": "first"}}, "no filterable field 'note'"),
        ({"facets": ("note",)}, r"no facetable field 'note'"),
    ],
)
async def test_a_field_that_is_not_declared_is_an_error_of_the_search(
    opens: Opens, write: Writes, options: dict[str, Any], message: str
) -> None:
    async with opens(fielded()) as kb:
        await kb.add("docs", [write({"t.csv": CSV})])
        with pytest.raises(UsageError, match=message):
            await ask(kb, **options)


async def test_a_field_that_one_collection_of_several_declares_is_a_warning_for_the_others(
    opens: Opens, write: Writes
) -> None:
    warnings = Warnings()
    async with opens(fielded(), spec("plain")) as kb:
        folder = write({"t.csv": CSV})
        await kb.add("docs", [folder])
        await kb.add("plain", [folder])
        found = await ask(
            kb, asker=scope(warn=warnings), collections=("docs", "plain"), filter={"year": 2020}
        )
    assert ids(found) == ["1"]
    assert [
        message
        for _, message in warnings.received
        if "'plain' has no filterable field 'year'" in message
    ]


async def test_facets_count_in_the_collections_that_have_the_field_and_narrow_no_search(
    opens: Opens, write: Writes
) -> None:
    warnings = Warnings()
    other = spec("other", fields={"kind": FieldSpec(facetable=True), "tag": FieldSpec()})
    async with opens(fielded(), other, spec("plain")) as kb:
        folder = write({"t.csv": CSV})
        await kb.add("docs", [folder])
        await kb.add(
            "other", [write({"u.csv": "id,text,kind,tag\n7,ripe pears of all kinds,fruit,a\n"})]
        )
        await kb.add("plain", [folder])
        every = ("docs", "other", "plain")
        without = await ask(kb, collections=every)
        found = await ask(kb, asker=scope(warn=warnings), collections=every, facets=("tag", "kind"))
        with pytest.raises(
            UsageError,
            match=r"none of the collections has a facetable field 'knd' \(did you mean 'kind'\?\)",
        ):
            await ask(kb, collections=every, facets=("knd",))
    assert ids(found) == ids(without)
    assert found.facets is not None
    assert {
        name: [(each.value, each.count) for each in counts] for name, counts in found.facets.items()
    } == {
        "tag": [("a", 2), ("b", 1)],
        "kind": [("fruit", 1)],
    }
    assert warnings.received == [
        (
            "facet_not_counted",
            "the facet 'tag' leaves out collection 'other', whose field 'tag' is not facetable",
        )
    ]


async def test_front_matter_becomes_fields_and_a_wrong_type_names_its_line(
    opens: Opens, write: Writes
) -> None:
    folder = write(
        {
            "good.md": "---\ntitle: Good\nyear: 2024\ntag: [x, y]\nauthor: Ann\n---\nRipe pears.\n",
            "wrong.md": "---\ntitle: Wrong\n# a comment\nyear: soon\n---\nRipe pears.\n",
            "broken.md": "---\ntitle: Broken: indeed\n---\nRipe pears.\n",
        }
    )
    async with opens(fielded()) as kb:
        report = await kb.add("docs", [folder])
        found = await ask(kb, filter={"tag": "y"})
    errors = {file.document: file.error for file in report.files}
    assert errors["good.md"] == ""
    assert (
        f"{folder / 'wrong.md'}:4: was not added: 'year' should be a whole number, not 'soon'"
        in errors["wrong.md"]
    )
    assert (
        f"{folder / 'broken.md'}:2: was not added: its front matter is not YAML"
        in errors["broken.md"]
    )
    assert report.undeclared == ("author",)
    assert [(item.title, item.data) for item in found.items] == [
        ("Good", {"year": 2024, "tag": ["x", "y"]})
    ]


LONG = "\n\n".join(
    f"## Part {n}\n\nThe {word} is ripe."
    for n, word in enumerate(["pear", "plum", "apple", "fig", "quince"])
)


async def test_groups_give_few_passages_of_each_document(opens: Opens, write: Writes) -> None:
    files = {f"{n}.md": LONG + f"\n\nNumber {n}." for n in range(12)}
    async with opens() as kb:
        await kb.add("docs", [write(files)])
        once = await ask(kb, "ripe pear", groups=True, limit=12)
        twice = await ask(kb, "ripe pear", groups=2, limit=24)
    assert sorted(ids(once)) == sorted(files)
    assert [item.score for item in once.items] == sorted(
        (item.score for item in once.items), reverse=True
    )
    assert sorted(ids(twice)) == sorted([*files, *files])


async def test_neighbours_surround_a_hit_and_nothing_is_repeated(
    opens: Opens, write: Writes
) -> None:
    async with opens(spec("docs", chunk=ChunkSpec(size=32, overlap=0))) as kb:
        await kb.add("docs", [write({"a.md": LONG})])
        [one] = (await ask(kb, "apple", limit=1, neighbours=1)).items
        every = await ask(kb, "ripe", limit=5, neighbours=4)
    assert one.content == "\n\n".join(
        f"## Part {n}\n\nThe {word} is ripe." for n, word in ((1, "plum"), (2, "apple"), (3, "fig"))
    )
    assert "\n\n".join(item.content for item in every.items).count("The plum is ripe.") == 1


async def test_neighbours_that_overlap_are_joined_without_repeating(
    opens: Opens, write: Writes
) -> None:
    text = " ".join(f"Sentence {n} speaks of fruit number {n}." for n in range(40))
    async with opens(spec("docs", chunk=ChunkSpec(size=64, overlap=24))) as kb:
        await kb.add("docs", [write({"a.md": text})])
        [item] = (await ask(kb, "Sentence 20 fruit", limit=1, neighbours=20)).items
    assert item.content == text


CODE = "# Code\n\n```python\n" + "\n\n".join(
    f"def fruit{n}(ripe):\n    if ripe:\n\n        return pick({n})\n    return None" for n in range(8)
) + "\n```\n"  # fmt: skip
TABLE = "| fruit | price |\n|---|---|\n" + "".join(
    f"| fruit{n} | costs {n} coins |\n" for n in range(20)
)
PROSE = "# Pears\n\n\n" + "\n\n".join(
    f"Pear {n} is ripe. It fell from tree {n}.  Nobody saw it,\nbut for fruit{n}." for n in range(9)
)  # fmt: skip


@pytest.mark.parametrize(
    "text", [CODE, TABLE, PROSE, f"{PROSE}\n\n{TABLE}\n\n{CODE}", "梨成熟了。" * 60], ids=len
)
@pytest.mark.parametrize("reach", [1, 20])
async def test_neighbours_are_the_documents_own_text(
    opens: Opens, write: Writes, text: str, reach: int
) -> None:
    async with opens(spec("docs", chunk=ChunkSpec(size=40, overlap=10))) as kb:
        await kb.add("docs", [write({"a.md": text})])
        chunks = (await ask(kb, document="a.md")).items
        found = [
            item
            for n in range(0, 8, 3)
            for item in (await ask(kb, f"fruit{n} 梨", limit=1, neighbours=reach)).items
        ]
    assert len(chunks) > 3
    assert found
    for item in found:
        assert item.extent is not None
        result = text[item.extent.start : item.extent.end]
        header = item.content.removesuffix(result)
        assert item.content == header + result
        assert header in ("", "| fruit | price |\n|---|---|\n")
        assert item.content.count("|---|---|") <= 1
        if reach == 20:
            assert item.content == text.strip()


def test_neighbours_that_were_stored_without_the_blanks_before_them_keep_their_places() -> None:
    def hit(content: str, start: int) -> Hit:
        return Hit("a.md", "", "", content, content, "", 0, 0, start, start + len(content))

    assert (
        selection.join_passages([hit("if ripe:", 0), hit("pick()", 13), hit("eat()", 20)])
        == "if ripe:\n    pick()\neat()"
    )
    assert (
        selection.join_passages([hit("One.", 0), hit("Two.", 6), hit("o. Three.", 8)])
        == "One.\n\nTwo. Three."
    )


async def test_diversity_puts_repetition_behind(opens: Opens, write: Writes) -> None:
    files = {"a.md": "ripe pears here", "b.md": "ripe pears here too", "c.md": "ripe plums there"}
    async with opens() as kb:
        await kb.add("docs", [write(files)])
        near = await ask(kb, "ripe pears here", limit=2)
        apart = await ask(kb, "ripe pears here", limit=2, diversity=0.7)
    assert ids(near) == ["a.md", "b.md"]
    assert ids(apart) == ["a.md", "c.md"]


def hit(document: str, vector: list[float], start: int = 0, content: str = "") -> Hit:
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return Hit(
        document=document,
        title="",
        url="",
        passage="",
        content=content,
        heading="",
        page=0,
        ordinal=0,
        cosine=0.0,
        start=start,
        end=start + len(content),
        vector=pack_vector([value / length for value in vector]),
    )


VECTORS = st.lists(
    st.tuples(*[st.integers(-3, 3)] * 3).filter(any).map(list), min_size=1, max_size=8
)


@given(vectors=VECTORS, limit=st.integers(1, 8))
def test_without_diversity_the_order_stays(vectors: list[list[float]], limit: int) -> None:
    hits = [hit(str(n), vector) for n, vector in enumerate(vectors)]
    scores = [1 - n / 10 for n in range(len(hits))]
    assert (
        selection.select_diverse(hits, scores, limit, 0.0, lambda cosine: max(0.0, cosine))
        == hits[:limit]
    )


@given(vectors=VECTORS, diversity=st.floats(0, 1))
def test_diversity_loses_nothing_and_begins_with_the_best(
    vectors: list[list[float]], diversity: float
) -> None:
    hits = [hit(str(n), vector) for n, vector in enumerate(vectors)]
    chosen = selection.select_diverse(
        hits,
        [1 - n / 10 for n in range(len(hits))],
        100,
        diversity,
        lambda cosine: max(0.0, cosine),
    )
    assert sorted(each.document for each in chosen) == sorted(each.document for each in hits)
    assert chosen[0].document == "0"


# ------------------------------------------------------------------------------------------ who may


@pytest.mark.parametrize(
    ("permission", "identity", "lets_in"),
    [
        ({}, {}, True),
        ("user", {}, False),
        ("user", {"user_id": "ann"}, True),
        ("team", {"user_id": "ann"}, False),
        ({"users": ["ann"], "teams": ["legal"]}, {"user_id": "bob"}, False),
        ({"users": ["ann"], "teams": ["legal"]}, {"user_id": "bob", "team_id": "legal"}, True),
        ({"users": []}, {"user_id": "ann"}, False),
        ({"users": [""]}, {}, False),
        ({"scopes": ["kb:read"]}, {"scope": "mail kb:read"}, True),
        ({"scopes": ["kb:read"]}, {"scope": "kb:reader"}, False),
        ({"named": "user", "tenants": ["acme"]}, {"tenant_id": "acme"}, False),
    ],
)
async def test_a_permission_lets_in_whom_it_names_and_nobody_else(
    opens: Opens, write: Writes, permission: Any, identity: dict[str, Any], lets_in: bool
) -> None:
    asker = scope()
    asker = Scope(**{**vars(asker), "identity": Identity(**identity)})
    async with opens(spec("docs", permission=PermissionSpec.model_validate(permission))) as kb:
        await kb.add("docs", [write({"a.md": "ripe pears"})])
        for search in (
            ask(kb, asker=asker),
            kb.fetch_document("docs", "a.md", asker),
            ask(kb, asker=asker, document="a.md"),
        ):
            if lets_in:
                assert ids(await search) == ["a.md"]
            else:
                with pytest.raises(NotPermitted, match="'docs' is not open to"):
                    await search


async def test_a_search_without_a_tenant_is_not_permitted(opens: Opens) -> None:
    for spoken in (
        spec("docs", tenant_field="tenant"),
        spec("docs", permission=PermissionSpec(named="user")),
    ):
        async with opens(spoken) as kb:
            with pytest.raises(NotPermitted, match="not permitted: collection 'docs'"):
                await ask(kb)


async def test_no_filter_reaches_another_tenant(
    opens: Opens, write: Writes, tmp_path: Path
) -> None:
    table = "id,text,tenant,tag\n1,ripe pears,a,x\n2,ripe pears,b,x\n3,ripe pears,b,y\n"
    declared = spec("docs", tenant_field="tenant", fields={"tag": FieldSpec(facetable=True)})
    async with opens(declared) as kb:
        report = await kb.add("docs", [write({"t.csv": table})])
        for raw in (
            {"or": [{"tag": "x"}, {"tag": "y"}]},
            {"not": {"tag": "z"}},
            {"tag": {"not": None}},
            {"tag": None},
        ):
            found = await ask(kb, asker=scope("a"), filter=raw, facets=("tag",))
            assert set(ids(found)) <= {"1"}
            assert found.facets is not None
            assert sum(each.count for each in found.facets["tag"]) <= 1
        with pytest.raises(UsageError, match="no filterable field 'tenant'"):
            await ask(kb, asker=scope("a"), filter={"tenant": "b"})
        await kb.add("docs", [write({"t.csv": table.replace("3,ripe pears,b", "3,ripe pears,a")})])
        moved = [ids(await ask(kb, asker=scope(tenant))) for tenant in "ab"]
    assert report.counts == {"added": 3}
    assert [sorted(each) for each in moved] == [["1", "3"], ["2"]]

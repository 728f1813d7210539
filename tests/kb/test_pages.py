"""Pages of a search and the number of its matches, through the knowledge base's own door."""

from __future__ import annotations

from typing import Any

import pytest

from groundhook.core.errors import UsageError
from groundhook.core.ports import SourceResult
from groundhook.core.types.search import SearchRequest
from groundhook.handlers.kb.knowledge_base import KnowledgeBase
from tests.kb.conftest import Opens, Writes, scope, spec

FRUIT = ("pear", "plum", "fig", "apple", "quince")


def orchard(count: int, folder: str) -> dict[str, str]:
    return {
        f"{folder}/{n}.md": f"a {FRUIT[n % 5]} and {n % 7} of {n % 11} pears in {folder}"
        for n in range(count)
    }


async def page(kb: KnowledgeBase, *collections: str, **more: Any) -> SourceResult:
    fields = {"threshold": 0.0, "limit": 7, **more}
    request = SearchRequest(type="kb", query="a ripe pear", collections=collections, **fields)
    return await kb.search(request, scope())


@pytest.mark.parametrize("collections", [("docs",), ("docs", "more")])
async def test_pages_put_together_are_every_passage_once(
    opens: Opens, write: Writes, collections: tuple[str, ...]
) -> None:
    folder = write({**orchard(40, "docs"), **orchard(30, "more")})
    async with opens(spec("docs"), spec("more")) as kb:
        for name in ("docs", "more"):
            await kb.add(name, [folder / name])
        first = await page(kb, *collections)
        pages = [await page(kb, *collections, offset=n) for n in range(0, 84, 7)]
        odd = await page(kb, *collections, offset=3)
    count = 70 if len(collections) == 2 else 40
    keys = [item.key for one in pages for item in one.items]
    assert pages[0] == first
    assert (len(keys), len(set(keys))) == (count, count)
    assert [item.key for item in odd.items][:4] == keys[3:7]
    assert {(one.total, one.total_is) for one in (*pages, odd)} == {(count, "exact")}


async def test_a_total_of_grouped_passages_counts_those_that_can_be_returned(
    opens: Opens, write: Writes
) -> None:
    text = "\n\n".join(f"## Part {n}\n\nA ripe pear, number {n}." for n in range(6))
    async with opens() as kb:
        await kb.add("docs", [write({f"{n}.md": text for n in range(4)})])
        assert (await page(kb, "docs")).total == 24
        one_each = await page(kb, "docs", groups=1, limit=3)
        rest = await page(kb, "docs", groups=1, limit=3, offset=3)
    assert one_each.total == rest.total == 4
    assert {item.document_id for item in (*one_each.items, *rest.items)} == {
        f"{n}.md" for n in range(4)
    }


async def test_a_later_page_of_passages_that_differ_is_refused(opens: Opens, write: Writes) -> None:
    async with opens() as kb:
        await kb.add("docs", [write({"a.md": "a ripe pear"})])
        with pytest.raises(UsageError, match="offset 5 cannot be used together with diversity"):
            await page(kb, "docs", offset=5, diversity=0.5)

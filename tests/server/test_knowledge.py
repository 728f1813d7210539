"""Collections over HTTP: listed, searched with reasons, documents added and removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.parts.kept_collections import COFFEE, TEA, kept  # noqa: F401 - a fixture
from tests.server.conftest import OTHER, Served, lines


def add(client: httpx.Client, collection: str, **files: str) -> list[dict[str, Any]]:
    form = [
        ("file", (name.replace("__", "/"), text, "text/markdown")) for name, text in files.items()
    ]
    answer = client.post(f"/api/kb/{collection}/documents", files=form)
    assert answer.status_code == 200, answer.text
    return lines(answer)


def test_files_are_added_with_progress_listed_read_and_removed(kept: Served) -> None:  # noqa: F811
    with kept.client() as client:
        said = add(client, "notes", **{"tea.md": TEA, "more__coffee.md": COFFEE})
        assert said[0] == {"type": "received", "files": ["tea.md", "more/coffee.md"]}
        assert any(each["type"] == "progress" for each in said)
        files = {each["document"]: each for each in said if each["type"] == "file"}
        assert {name: each["outcome"] for name, each in files.items()} == {
            "tea.md": "added",
            "more/coffee.md": "added",
        }
        assert said[-1] == {"type": "done", "counts": {"added": 2}, "unread": []}
        listed = client.get("/api/kb/notes").json()
        assert [each["document"] for each in listed["documents"]] == ["more/coffee.md", "tea.md"]
        (notes,) = (
            each for each in client.get("/api/kb").json()["collections"] if each["id"] == "notes"
        )
        assert (notes["documents"], notes["tenant"]) == (2, None)
        assert notes["assistants"] == ["tea"]
        read = client.get("/api/sources/kb/notes/more/coffee.md").json()
        assert "three minutes" in read["passages"][0]["content"]
        again = add(client, "notes", **{"tea.md": TEA + "\nSencha takes two.\n"})
        assert again[-1]["counts"] == {"replaced": 1}
        assert client.delete("/api/kb/notes/documents/more/coffee.md").status_code == 204
        assert client.delete("/api/kb/notes/documents/more/coffee.md").status_code == 404
        assert client.get("/api/kb/notes").json()["total"] == 1
    uploads = Path(kept.app, ".groundhook/uploads")
    assert list(uploads.iterdir()) == []


def test_a_file_that_cannot_be_read_is_named(kept: Served) -> None:  # noqa: F811
    with kept.client() as client:
        said = add(client, "notes", **{"broken.pdf": "no pdf", "empty.xyz": "?"})
    (failed,) = (each for each in said if each["type"] == "file")
    assert (failed["path"], failed["outcome"]) == ("broken.pdf", "failed")
    assert failed["error"]
    assert said[-1]["unread"] == ["empty.xyz"]


def test_a_search_says_why_a_document_was_not_found(kept: Served) -> None:  # noqa: F811
    ask = {"query": "How long does coffee take?"}
    with kept.client() as client:
        add(client, "asked", **{"tea.md": TEA, "coffee.md": COFFEE})

        def why(**more: Any) -> str:
            answer = client.post("/api/kb/asked/search", json={**ask, **more})
            assert answer.status_code == 200, answer.text
            return str(answer.json()["why"])

        assert why(expect="coffee.md", threshold=0) == ""
        assert why(expect="nothing.md") == "it is not in this collection"
        assert why(expect="tea.md", threshold=0, limit=1) == (
            "its best passage has place 2, and 1 are shown"
        )
        assert why(expect="tea.md", threshold=1).startswith("below the threshold 1.00: its best")


def test_a_search_tells_meaning_and_words_apart_and_what_left_a_passage_out(
    kept: Served,  # noqa: F811
) -> None:
    with kept.client() as client:
        add(client, "asked", **{"tea.md": TEA, "coffee.md": COFFEE})

        def asked(**more: Any) -> Any:
            ask = {"query": "How long does coffee take?", "expect": "tea.md", **more}
            return client.post("/api/kb/asked/search", json=ask).json()

        one = asked(threshold=0, limit=1)
        (best,) = one["passages"]
        assert (best["place"], best["meaning_place"], best["words_place"]) == (1, 1, 1)
        assert best["score"] >= best["meaning"] > 0
        (tea,) = one["left_out"]
        assert one["expected"] == tea
        assert (tea["document"], tea["place"], tea["cut"]) == ("tea.md", 2, "limit")
        assert one["by_words"]
        assert best["words"] > tea["words"]
        assert {each["cut"] for each in asked(threshold=1)["left_out"]} == {"threshold"}


def test_what_is_added_belongs_to_the_tenant_of_the_caller(kept: Served) -> None:  # noqa: F811
    with kept.client(OTHER) as acme, kept.client() as local:
        assert add(acme, "own", **{"tea.md": TEA})[-1]["counts"] == {"added": 1}
        assert acme.get("/api/kb/own").json()["total"] == 1
        refused = local.get("/api/kb/own")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
        assert "own" not in {each["id"] for each in local.get("/api/kb").json()["collections"]}

"""Attacks on collections over HTTP: by readers, by keys of others, with names and bodies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.kept_collections import TEA, kept  # noqa: F401 - a fixture
from tests.server.conftest import OTHER, READER, Served, lines

NAMES = (
    "../evil.md",
    "/etc/evil.md",
    "a/../../evil.md",
    ".hidden.md",
    "a\\b.md",
    "c:evil.md",
    "x" * 400,
    "é" * 128 + ".md",
)


def test_readers_and_keys_of_other_assistants_keep_no_collection(
    kept: Served,  # noqa: F811
) -> None:
    secret = "agents.late.secret"
    form = {"file": ("tea.md", TEA)}
    ask = {"query": "tea"}
    with kept.client(READER) as reader, kept.client(OTHER) as other:
        for client, collection, status in ((reader, "notes", 403), (other, secret, 404)):
            at = f"/api/kb/{collection}"
            assert client.get(at).status_code == status
            assert client.post(f"{at}/documents", files=form).status_code == status
            assert client.post(f"{at}/search", json=ask).status_code == status
            assert client.delete(f"{at}/documents/tea.md").status_code == status
        assert reader.get("/api/kb").status_code == 403
        assert secret not in other.get("/api/kb").text
        assert other.get("/api/kb/nothing").json()["code"] == "unknown_name"


def test_a_keeper_of_some_assistants_syncs_their_toolkits_and_hears_of_no_counts(
    kept: Served,  # noqa: F811
) -> None:
    with kept.client(READER) as reader:
        assert reader.get("/api/syncs").status_code == 403
        assert reader.post("/api/syncs/shared").status_code == 403
    with kept.client(OTHER) as acme:
        (state,) = acme.get("/api/syncs").json()["syncs"]
        assert state["toolkit"] == "shared"
        assert {"records", "error"}.isdisjoint(state)
        assert lines(acme.post("/api/syncs/shared"))[-1] == {"type": "done", "toolkit": "shared"}
        refused = acme.post("/api/syncs/agents.late.private")
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_name")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_an_upload_leads_nowhere(kept: Served, name: str) -> None:  # noqa: F811
    with kept.client() as client:
        answer = client.post("/api/kb/notes/documents", files={"file": (name, TEA)})
    assert answer.status_code == 400
    assert list(kept.app.parent.rglob("evil.md")) == []
    uploads = Path(kept.app, ".groundhook/uploads")
    assert not uploads.exists() or list(uploads.iterdir()) == []


@pytest.mark.parametrize("names", [("z.md", "z.md/b.md"), ("z.md/b.md", "z.md"), ("a.md", "a.md")])
def test_files_that_cannot_be_beside_each_other_are_named(
    kept: Served,  # noqa: F811
    names: tuple[str, str],
) -> None:
    with kept.client() as client:
        form = [("file", (name, TEA)) for name in names]
        answer = client.post("/api/kb/notes/documents", files=form)
    assert (answer.status_code, answer.json()["code"]) == (400, "usage"), answer.text
    assert all(name in answer.json()["detail"] for name in names)


HEAD = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.md"\r\n'
PARTS = {
    "many headers": HEAD + b"a:b\r\n" * 100_000,
    "a long header": HEAD + b"a:" + b"b" * 1_000_000,
    "many parts": (HEAD + b"\r\nx\r\n") * 1000,
    "no end": HEAD + b"\r\nthe text is cut",
    "a long name": HEAD.replace(b"a.md", b"a;" * 100_000),
}


@pytest.mark.parametrize("kind", PARTS)
def test_a_form_of_many_pieces_is_refused(kept: Served, kind: str) -> None:  # noqa: F811
    headers = {"content-type": "multipart/form-data; boundary=x"}
    with kept.client() as client:
        answer = client.post("/api/kb/notes/documents", content=PARTS[kind], headers=headers)
    assert answer.status_code == 400, answer.text


def test_an_upload_is_bounded_and_only_a_form_is_one(kept: Served) -> None:  # noqa: F811
    with kept.client() as client:
        at = "/api/kb/notes/documents"
        big = client.post(at, files={"file": ("big.md", b"x" * (33 << 20))})
        assert (big.status_code, "upload_mb" in big.text) == (413, True)
        many = [("file", (f"{n}.md", "x")) for n in range(101)]
        assert client.post(at, files=many).status_code == 400
        assert client.post(at, json={}).status_code == 415
        assert client.post(at, data={"a": "b"}, files={}).status_code == 415
        broken = client.post(
            at, content=b"--x\r\nno", headers={"content-type": "multipart/form-data; boundary=x"}
        )
        assert broken.status_code == 400
        cookie = client.post("/api/session", json={"key": "x"})
        assert cookie.status_code == 401
    with kept.client("") as page:
        page.cookies.set("gh_session", "chosen")
        site = {"sec-fetch-site": "cross-site"}
        answer = page.post(at, files={"file": ("tea.md", TEA)}, headers=site)
        assert answer.status_code in (401, 403)

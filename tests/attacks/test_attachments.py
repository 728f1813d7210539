"""Files that strangers attach: those of others, too many of them, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApp
from tests.parts.attached_files import FILES, LEASE, QUESTION, content, end, new_chat, part
from tests.parts.turns import app_with, of, run
from tests.server.conftest import OTHER, Served, serving, write


@pytest.fixture(scope="module")
def files_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("files") / "app", FILES)


@pytest.fixture(scope="module")
def served_files(files_app: Path) -> Iterator[Served]:
    with serving(files_app) as server:
        yield server


def test_what_one_person_keeps_is_bounded_and_the_error_names_the_limit(
    served_files: Served,
) -> None:
    with served_files.client() as client:
        chat = new_chat(client)
        path = f"/api/chats/{chat}/turns"
        refused = client.post(path, json={"content": content(*[part()] * 4)})
        assert refused.status_code == 400
        assert "4 files, more than the limit of 3" in refused.text
        for _ in range(2):
            end(client.post(path, json={"content": content(part(), part(name="b.pdf"))}))
        refused = client.post(path, json={"content": content(part())})
        assert refused.status_code == 400
        assert "at most 4 files" in refused.text
        assert "attachments.person_files" in refused.text
        assert len(client.get(f"/api/chats/{chat}").json()["messages"]) == 4
        with served_files.client(OTHER) as theirs:
            other = new_chat(theirs)
            end(theirs.post(f"/api/chats/{other}/turns", json={"content": content(part())}))
            large = part(b"tea " * 300_000, "tea.txt", "text/plain")
            refused = theirs.post(f"/api/chats/{other}/turns", json={"content": content(large)})
            assert "at most 1 MB of files" in refused.text
            theirs.delete(f"/api/chats/{other}")
        client.delete(f"/api/chats/{chat}")


@pytest.mark.parametrize("guess", ["f_000000000000000000000000", "f_", "f_%00", "f_' or 1=1"])
def test_a_reference_to_no_file_is_refused(served_files: Served, guess: str) -> None:
    with served_files.client() as client:
        chat = new_chat(client)
        reference = {"type": "file", "file": {"file_id": guess}}
        refused = client.post(f"/api/chats/{chat}/turns", json={"content": content(reference)})
        assert refused.status_code == 404
        assert client.get(f"/api/chats/{chat}/files/{guess}").status_code == 404


def test_no_person_reads_or_searches_the_file_of_another(served_files: Served) -> None:
    with served_files.client() as mine, served_files.client(OTHER) as theirs:
        chat = new_chat(mine)
        end(mine.post(f"/api/chats/{chat}/turns", json={"content": content(part())}))
        stored = mine.get(f"/api/chats/{chat}").json()["messages"][0]
        id = stored["content"][1]["file"]["file_id"]
        other = new_chat(theirs)
        reference = {"type": "file", "file": {"filename": "lease.pdf", "file_id": id}}
        answers = [
            theirs.get(f"/api/chats/{chat}/files/{id}"),
            theirs.get(f"/api/chats/{other}/files/{id}"),
            theirs.post(f"/api/chats/{other}/turns", json={"content": content(reference)}),
            theirs.post(f"/api/chats/{chat}/turns", json={"content": content(reference)}),
            # Not even in another chat of the same person.
            mine.get(f"/api/chats/{new_chat(mine)}/files/{id}"),
        ]
        assert [answer.status_code for answer in answers] == [404] * 5
        assert not any("tenant pays" in answer.text for answer in answers)
        for asking, where in ((theirs, other), (mine, new_chat(mine))):
            answer = asking.post(f"/api/chats/{where}/turns", json={"text": QUESTION})
            if answer.status_code == 200:
                assert "three months" not in answer.text
        message = {"role": "user", "content": content(reference)}
        alone = theirs.post("/api/turns", json={"assistant": "files", "messages": [message]})
        assert "three months" not in alone.text
        mine.delete(f"/api/chats/{chat}")


def test_a_file_with_a_script_is_saved_and_not_shown(served_files: Served) -> None:
    page = b"<p>Tea</p><script>alert(1)</script>"
    with served_files.client() as client:
        chat = new_chat(client)
        for kind in ("text/html", "image/svg+xml", "image/png\r\nx: y"):
            hostile = part(page, 'a\r\nb".html', kind)
            body = {"content": content(hostile)}
            answer = client.post(f"/api/chats/{chat}/turns", json=body)
            if answer.status_code == 400:
                continue
            kept = client.get(f"/api/chats/{chat}").json()["messages"][-2]["content"][1]["file"]
            got = client.get(f"/api/chats/{chat}/files/{kept['file_id']}")
            assert got.headers["content-type"] == "application/octet-stream"
            assert got.headers["content-disposition"].startswith("attachment;")
            assert got.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in got.headers["content-security-policy"]
        client.delete(f"/api/chats/{chat}")


PLAIN = '{"name": "A", "connector": "script"}'


def asked(address: str, name: str = "a.pdf") -> list[dict[str, Any]]:
    file = {"type": "file", "file": {"filename": name, "file_data": address}}
    return [{"role": "user", "content": [{"type": "text", "text": "?"}, file]}]


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/a.txt",
        "https://localhost/a.txt",
        "https://[::1]/a.txt",
        "https://10.0.0.1/a.txt",
        "https://169.254.169.254/latest/meta-data",
        "http://example.org/a.txt",
        "file:///etc/passwd",
        "https://user@127.0.0.1:22/",
    ],
)
async def test_the_address_of_a_file_reaches_nothing_private(
    make_app: MakeApp, address: str
) -> None:
    events = await run(app_with(make_app, PLAIN), asked(address))
    (done,) = of(events, "search_complete")
    assert done.error
    assert not of(events, "search_result")


async def test_a_file_that_keeps_a_parser_busy_ends_at_its_deadline(make_app: MakeApp) -> None:
    app = app_with(make_app, PLAIN)
    (app / "agent").mkdir(exist_ok=True)
    (app / "agent/agent.yml").write_text("attachments: {timeout_ms: 1}\n")
    events = await run(app, asked(part(LEASE)["file"]["file_data"]))
    (warning,) = [each for each in of(events, "warning") if each.code == "source_timeout"]
    assert "'a.pdf' was not read within 1 ms (attachments.timeout_ms)" in (
        f"{warning.message} ({warning.hint})"
    )

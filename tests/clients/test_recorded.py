"""What real clients sent (recorded by `make test-clients RECORD=1`) is answered as it was then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.recording import replay
from tests.server.conftest import Served

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_what_a_client_sent_is_answered(file: Path, clients_server: Served) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))["requests"]
    with clients_server.client() as client:
        answers = replay(client, recorded)
    assert [answer.status_code for answer in answers] == [each["status"] for each in recorded]
    for answer in answers:
        # An MCP client hears of a stream that is not offered.
        assert answer.status_code in (200, 202, 204, 405), answer.text
        assert '"error":{' not in answer.text.replace(" ", "")
        assert '"type":"error"' not in answer.text

"""An app in the style of published packages: the check finds no error in it, and only warnings that
are true; its turns run, and its tests pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pytest

from groundhook import open_host
from groundhook.core.types.events import Event
from groundhook.host.testing.canned import CannedSource
from groundhook.host.testing.runner import Result, open_runner
from tests.cli.conftest import run_in
from tests.conftest import MakeApp
from tests.packages.style_app import PACKAGES, files
from tests.parts.turns import end, kb, of, scripted, web

KEYS = {"SERPAPI_API_KEY": "k"}


WARNINGS = """\
assistants/tests/hook-calls/package.yao:1:40: unknown key 'sandbox', which nothing reads
connectors/gpt.conn.yao:3:37: unknown key 'version', which nothing reads
"""


def test_the_check_of_such_an_app_shows_no_error(make_app: MakeApp) -> None:
    ran = run_in(make_app(files()), "check", environment=KEYS)
    assert len(PACKAGES) == 20
    found = [line.removeprefix("warning: ").partition(" (known")[0] for line in ran.problems]
    assert found == WARNINGS.splitlines()
    assert (ran.code, ran.out) == (0, "no errors, 2 warnings\n")


async def test_its_tests_pass_without_recordings(make_app: MakeApp) -> None:
    results: list[Result] = []
    with anyio.fail_after(60):
        async with open_runner(make_app(files()), environment=KEYS) as runner:
            async for result in runner.run(()):
                if isinstance(result, Result):
                    results.append(result)
    assert [result.name for result in results if result.status != "passed"] == []
    assert len(results) == 5


async def turn(make_app: MakeApp, assistant: str, **options: Any) -> Sequence[Event]:
    model = scripted({"text": "Fine.", "times": 0})
    sources: Mapping[Any, Any] = {"web": web(), "kb": kb(), "db": CannedSource({})}
    with anyio.fail_after(60):
        async with (
            open_host(
                make_app({**files(), "agent/agent.yml": "connector: gpt\nhooks: {workers: 0}\n"}),
                environment=KEYS,
                sources=sources,
                connectors={"gpt": model, "claude": model},
            ) as host,
            host.stream(assistant, "question", **options) as events,
        ):
            return [event async for event in events]


@pytest.mark.parametrize(
    ("assistant", "data"),
    [
        ("tests.hook-basic", {"text": "Fine.", "length": 8}),
        ("tests.hook-files", {"count": 2}),
        ("tests.hook-trace", None),
        ("tests.hook-memory", None),
        ("tests.hook-calls", None),
        ("src.search-all", None),
        ("prompts.variables", None),
        ("locales.router", None),
    ],
)
async def test_its_turns_run(make_app: MakeApp, assistant: str, data: Any) -> None:
    events = await turn(make_app, assistant)
    assert [event.message for event in of(events, "error")] == []
    assert end(events).content.endswith("Fine.")
    if data is not None:
        assert end(events).data == data

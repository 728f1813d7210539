"""The sample assistants of toolkits exactly as the repository has them, with the built-in embedding
model, from the command line: what a newcomer runs, and what is missing without an identity."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import run_in

ROOT = Path(__file__).parents[2]
Shipped = Callable[[str], Path]


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Return the app of the repository with one assistant alone, synchronised if it is synced."""
    made: dict[str, Path] = {}

    def make(assistant: str) -> Path:
        if assistant not in made:
            app = made[assistant] = tmp_path_factory.mktemp(f"shipped-{assistant}")
            shutil.copytree(ROOT / "agent", app / "agent")
            shutil.copytree(ROOT / "assistants" / assistant, app / "assistants" / assistant)
            if assistant != "documents":
                done = run_in(app, "tools", "sync", assistant)
                assert done.code == 0, done.err
        return made[assistant]

    return make


@pytest.mark.parametrize(
    ("assistant", "question", "identity", "quoted"),
    [
        ("learning", "How do plants make sugar?", "--tenant north-college", "Photosynthesis"),
        ("memory", "How do we limit requests?", "--team red --tenant acme", "token bucket"),
        ("documents", "Which offers are there for the lift?", "--user m1 --tenant p1", "Offer for"),
    ],
)
def test_a_chat_as_the_docs_show_it_quotes_and_cites_its_sources(
    shipped: Shipped, assistant: str, question: str, identity: str, quoted: str
) -> None:
    ran = run_in(shipped(assistant), "chat", assistant, question, *identity.split())
    assert (ran.code, ran.problems) == (0, [])
    assert quoted in ran.out
    assert "#ref:" in ran.out.partition("\nSources")[0]
    folder = ROOT / "docs/toolkits" / f"{assistant}.md"
    command = f'groundhook chat {assistant} "{question}" {identity}'
    assert command in folder.read_text(encoding="utf-8")


def test_learning_finds_the_section_of_another_language(shipped: Shipped) -> None:
    course = {"courseId": "b", "title": "Biologie", "outcomes": []}
    arguments = {"userIntent": "Wie stellen Pflanzen Zucker her?", "courseContext": course}
    call = ("tools", "call", "searchResources", json.dumps(arguments), "--tenant", "north-college")
    [answer] = run_in(shipped("learning"), *call, "--json").lines
    assert len(answer["result"]["resources"]) == 5
    assert any("hotosynthes" in one["title"] for one in answer["result"]["resources"])


def test_a_member_finds_its_own_documents_alone(shipped: Shipped) -> None:
    def found(user: str, tenant: str) -> list[str]:
        query = '{"query": "complaints about the lift"}'
        identity = ("--user", user, "--tenant", tenant)
        ran = run_in(
            shipped("documents"), "tools", "call", "search_documents", query, *identity, "--json"
        )
        return [one["title"] for one in ran.lines[0]["result"]["documents"]]

    assert found("m2", "p1")[0] == "complaint-about-lift-house-5.pdf"
    assert not any("omplaint" in title for title in found("m1", "p1"))
    assert not any("lift" in title for title in found("m1", "p2"))
    assert found("m3", "p1") == []


@pytest.mark.parametrize(
    ("assistant", "identity", "message"),
    [
        (
            "learning",
            "",
            "searchResources needs a tenant (institution), and the request names none (give"
            " --tenant)",
        ),
        ("memory", "", "search needs a team, and the request names none (give --team)"),
        (
            "documents",
            "--tenant p1",
            "search_documents needs a user (member), and the request names none (give --user)",
        ),
    ],
)
def test_a_chat_that_lacks_an_identity_names_the_option_and_no_line_of_the_hook(
    shipped: Shipped, assistant: str, identity: str, message: str
) -> None:
    ran = run_in(shipped(assistant), "chat", assistant, "Where is it?", *identity.split())
    assert (ran.code, ran.problems) == (1, [f"error: not permitted: {message}"])


def test_programs_read_the_option_and_the_line_of_the_hook(shipped: Shipped) -> None:
    ran = run_in(shipped("memory"), "chat", "memory", "x", "--json")
    [failed] = [line for line in ran.lines if line["type"] == "error"]
    assert failed["file"] == "assistants/memory/index.ts"
    assert failed["hint"] == "give --team"


def test_a_team_without_its_tenant_gets_one_warning_that_names_the_option(shipped: Shipped) -> None:
    ran = run_in(shipped("memory"), "chat", "memory", "rate limits", "--team", "red")
    warnings = [line for line in ran.problems if line.startswith("warning: ")]
    [warning] = [line for line in warnings if "no language model" not in line]
    assert "for a team without a tenant" in warning
    assert warning.endswith("(give --tenant)")


def test_a_tool_that_is_not_permitted_or_not_known_says_what_to_give(shipped: Shipped) -> None:
    app = shipped("memory")
    arguments = '{"query": "x", "collection": "qa"}'
    refused = run_in(app, "tools", "call", "memory.search", arguments, "--user", "u")
    assert refused.problems == [
        "error: not permitted: search needs a team, and the request names none (give --team)"
    ]
    unknown = run_in(app, "tools", "call", "find_many", "{}")
    assert unknown.problems == [
        "error: no tool 'find_many' (known: memory.fetch, memory.search, memory.batch_fetch)"
    ]
    closed = run_in(app, "search", "kb", "x", "--collection", "backend")
    assert closed.problems[0].endswith("(give --user, --team or --tenant)")

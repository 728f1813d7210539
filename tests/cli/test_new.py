"""`groundhook new assistant`, in an empty folder and in an app that is there: what it makes runs,
and nothing is lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from groundhook import open_host
from tests.cli.conftest import Groundhook, run_in


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


@pytest.fixture
def groundhook(empty: Path) -> Groundhook:
    """Runs the command in an empty folder."""
    return partial(run_in, empty)


def commands(out: str) -> list[str]:
    """What the output says to type next."""
    return [
        line.partition("#")[0].strip()
        for line in out.splitlines()
        if line.startswith("  groundhook ")
    ]


def test_what_it_says_to_type_next_works_word_for_word(groundhook: Groundhook) -> None:
    made = groundhook("new", "assistant", "team.helper")
    assert (made.code, made.err) == (0, "")
    first, *others = commands(made.out)
    kb, chat, types, check, test = (
        line.replace('"', "").split(maxsplit=3)[1:] for line in (*first.split(" && "), *others)
    )

    assert groundhook(*kb[:2], *kb[2].split()).code == 0
    answer = groundhook(*chat)
    assert (answer.code, answer.err) == (0, "")
    assert "groundhook kb add" in answer.out
    assert "#ref:" in answer.out
    assert groundhook(*types).out == "types/groundhook.d.ts written\ntsconfig.json written\n"
    checked = groundhook(*check)
    assert (checked.code, checked.out, checked.err) == (0, "No mistakes found.\n", "")
    tested = groundhook(*test)
    assert tested.code == 0
    assert " 0 failed" in tested.out


async def test_the_hook_of_a_new_assistant_runs_without_documents_and_without_a_key(
    groundhook: Groundhook, empty: Path
) -> None:
    groundhook("new", "assistant", "helper")
    async with open_host(empty, environment={}) as host:
        async with host.stream("helper", "What is this assistant for?") as events:
            seen = [event async for event in events]
        assert [event for event in seen if event.type == "error"] == []
        assert [event.source for event in seen if event.type == "search_start"] == ["hook"]
        async with host.stream("helper", "hello") as events:
            assert [event async for event in events if event.type == "search_start"] == []


def test_an_app_that_is_there_keeps_its_settings(shop: Path) -> None:
    before = (shop / "agent/agent.yml").read_text(encoding="utf-8")
    made = run_in(shop, "new", "assistant", "helper")
    assert made.code == 0
    assert "agent/agent.yml" not in made.out
    assert (shop / "agent/agent.yml").read_text(encoding="utf-8") == before
    assert not (shop / ".gitignore").exists()


def test_another_folder_is_named_in_what_to_type_next(tmp_path: Path) -> None:
    (tmp_path / "my app").mkdir()
    made = run_in(tmp_path, "new", "assistant", "helper", "--app", "my app")
    assert (tmp_path / "my app/assistants/helper/package.yao").is_file()
    assert all(line.endswith("--app 'my app'") for line in commands(made.out))


def test_nothing_is_overwritten(groundhook: Groundhook, empty: Path) -> None:
    groundhook("new", "assistant", "helper")
    hook = empty / "assistants/helper/index.ts"
    hook.write_text("// mine", encoding="utf-8")
    again = groundhook("new", "assistant", "helper")
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith(
        "error: the assistant 'helper' exists already, in 'assistants/helper'"
    )
    assert hook.read_text(encoding="utf-8") == "// mine"


def test_a_file_in_the_way_stops_it_before_anything_is_written(
    groundhook: Groundhook, empty: Path
) -> None:
    (empty / "assistants/helper").mkdir(parents=True)
    (empty / "assistants/helper/index.ts").write_text("// mine", encoding="utf-8")
    stopped = groundhook("new", "assistant", "helper")
    assert stopped.code == 1
    assert "'assistants/helper/index.ts' exists already" in stopped.err
    assert [path.name for path in empty.rglob("*") if path.is_file()] == ["index.ts"]


@pytest.mark.parametrize("id", ["", "../up", "a..b", ".a", "a/b", "a b", "ä", "-a"])
def test_an_id_that_cannot_be_one_is_refused(groundhook: Groundhook, empty: Path, id: str) -> None:
    refused = groundhook("new", "assistant", "--", id)
    assert refused.code == 1
    assert refused.err.startswith(f"error: {id!r} cannot be the id of an assistant")
    assert list(empty.iterdir()) == []


def test_an_assistant_inside_a_folder_of_a_package_is_refused(
    groundhook: Groundhook, empty: Path
) -> None:
    (empty / "assistants/team").mkdir(parents=True)
    (empty / "assistants/team/package.yao").write_text("{}", encoding="utf-8")
    refused = groundhook("new", "assistant", "team.kb.x")
    assert refused.code == 1
    assert "'kb' is a folder of a package" in refused.err
    assert groundhook("new", "assistant", "tests.x").code == 0


def test_as_json_it_lists_the_files(groundhook: Groundhook, empty: Path) -> None:
    made = groundhook("new", "assistant", "helper", "--json")
    files = [line["file"] for line in made.lines]
    assert "assistants/helper/kb/helper.kb.yao" in files
    assert all((empty / name).is_file() for name in files)

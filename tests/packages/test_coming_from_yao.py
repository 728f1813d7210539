"""`groundhook check --yao`: what of an app written for another system differs, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundhook.hooks.api.table import MISSING_ON_CTX
from groundhook.host.check.yao import FOLDERS, yao_notes
from tests.cli.conftest import run_in
from tests.conftest import MakeApp

PAGE = (Path(__file__).parents[2] / "docs/coming-from-yao.md").read_text(encoding="utf-8")


def test_folders_keys_and_calls_that_differ_are_named_with_their_places(make_app: MakeApp) -> None:
    root = make_app(
        {
            "flows/a.flow.yao": "{}",
            "scripts/a.ts": "new WebSocket('x');",
            "assistants/a/package.yao": '{\n  "sandbox": {}\n}',
            "assistants/a/index.ts": """\
            function Create(ctx, messages) {
              Process("models.pen.Save", {});
              Process("models.pen.Find", 1);
              Process("agents.a.lib.F");
              Process("fs.data.Read", "x");
              ctx.space.Get("x");
              new FS("data");
              ctx.memory.user.Set("x", { a: 1 }, 300);
              return { messages };
            }
            """,
            "assistants/b/package.yao": "{}",
            "assistants/b/index.ts": "function Create() { return { messages: [], search: true }; }",
        }
    )

    notes = {str(note.place): note.message for note in yao_notes(root)}

    assert notes == {
        "flows": "nothing reads this folder",
        "assistants/a/package.yao:2:3": "'sandbox' has no effect",
        "assistants/a/index.ts:2:3": "the process 'models.pen.Save' does not exist",
        "assistants/a/index.ts:5:3": "the process 'fs.data.Read' does not exist",
        "assistants/a/index.ts:6:3": "ctx.space does not exist",
        "assistants/a/index.ts:7:3": "new FS does not exist",
        "assistants/a/index.ts:8:7": "the time to live is in milliseconds",
        "scripts/a.ts:1:1": "new WebSocket does not exist",
        "assistants/a/index.ts:9:3": (
            "a Create that returns messages ends the automatic search of the turn"
        ),
    }
    assert yao_notes(root, "b") == []


def test_a_threshold_of_another_scale_is_pointed_out_wherever_it_stands(make_app: MakeApp) -> None:
    root = make_app(
        {
            "agent/search.yao": '{"kb": {"threshold": 0.5}}',
            "kb/faq.kb.yao": '{"threshold": 0.75}',
            "assistants/a/package.yao": '{"search": {"kb": {"threshold": 1.0}}}',
            "assistants/a/index.ts": (
                "const Create = (ctx) => ctx.search.KB('x', { threshold: .6 }) && null;"
            ),
        }
    )
    assert sorted((str(note.place), note.message.split(":")[0]) for note in yao_notes(root)) == [
        ("assistants/a/index.ts:1:46", "a threshold of .6 drops more here"),
        ("assistants/a/package.yao:1:21", "a threshold of 1.0 drops more here"),
        ("kb/faq.kb.yao:1:3", "a threshold of 0.75 drops more here"),
    ]


@pytest.mark.parametrize(
    ("call", "noted"),
    [
        ('ctx.memory.chat.Set("x", JSON.stringify({ a: f(1) }), 3600)', True),
        ('ctx.memory.user?.Set("x", Date.now(), 60 * 60)', True),
        ('ctx.memory?.team.Set(\n  "x",\n  [1, 2],\n  60\n)', True),
        ('ctx.memory.chat.Set("x", f(1, 2))', False),
        ('ctx.memory.chat.Set("x", Math.max(1, 2, 3))', False),
        ('ctx.memory.chat.Set("x", { a: 1, b: 2 }); g(1, 2, 3)', False),
    ],
)
def test_a_time_to_live_is_noted_however_the_value_is_written(
    make_app: MakeApp, call: str, noted: bool
) -> None:
    hook = f"function Create(ctx) {{\n{call};\nreturn null;\n}}"
    root = make_app({"assistants/a/package.yao": "{}", "assistants/a/index.ts": hook})
    assert [note.message for note in yao_notes(root)] == (
        ["the time to live is in milliseconds"] if noted else []
    )


def test_comments_and_files_of_packages_inside_of_others_give_no_notes_of_their_own(
    make_app: MakeApp,
) -> None:
    hook = """\
        // ctx.sandbox was here
        const url = "https://x"; /* new FS(
        Process("fs.data.Read") */
        function Create(ctx) { ctx.space; }
    """
    root = make_app(
        {
            "assistants/a/package.yao": '{\n  // "sandbox": {}\n}',
            "assistants/a/b/package.yao": "{}",
            "assistants/a/b/index.ts": hook,
        }
    )
    notes = [f"{note.place}: {note.message}" for note in yao_notes(root)]
    assert notes == ["assistants/a/b/index.ts:4:24: ctx.space does not exist"]


def test_an_unknown_key_that_a_note_explains_is_reported_once(make_app: MakeApp) -> None:
    root = make_app({"assistants/a/package.yao": '{\n  "sandbox": {}\n}'})
    ran = run_in(root, "check", "--yao")
    assert [line.partition(" (")[0] for line in ran.problems] == [
        "warning: assistants/a/package.yao:2:3: 'sandbox' has no effect"
    ]


def test_the_page_names_every_folder_and_part_of_ctx_that_is_not_built() -> None:
    for name in (*FOLDERS, *MISSING_ON_CTX):
        assert f"`{name}`" in PAGE, name

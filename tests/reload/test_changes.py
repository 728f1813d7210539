"""Which files have changed, whatever the system says of folders that were just made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ObjectReceiveStream

from groundhook.host.app.watching import changes, stamps
from tests.conftest import MakeApp

APP = {"assistants/a/package.yao": "{}", "assistants/a/index.ts": "1"}


@asynccontextmanager
async def watched(app: Path) -> AsyncIterator[ObjectReceiveStream[frozenset[Path]]]:
    send, receive = anyio.create_memory_object_stream[frozenset[Path]](100)
    before = stamps(app)

    async def watch() -> None:
        async with send, aclosing(changes(app, before)) as batches:
            async for batch in batches:
                await send.send(batch)

    async with anyio.create_task_group() as tasks, receive:
        tasks.start_soon(watch)
        yield receive
        tasks.cancel_scope.cancel()


async def seen(receive: ObjectReceiveStream[frozenset[Path]], wanted: set[Path]) -> set[Path]:
    """What is reported until everything wanted was."""
    found: set[Path] = set()
    with anyio.fail_after(60):
        while not wanted <= found:
            found |= await receive.receive()
    return found


async def test_written_and_removed_files_are_reported(make_app: MakeApp) -> None:
    app = make_app(APP)
    hook, package = app / "assistants/a/index.ts", app / "assistants/a/package.yao"
    async with watched(app) as receive:
        hook.write_text("22", encoding="utf-8")
        assert await seen(receive, {hook}) == {hook}
        hook.unlink()
        package.write_text("{ }", encoding="utf-8")
        assert await seen(receive, {hook, package}) == {hook, package}


async def test_a_watch_that_follows_another_begins_with_what_that_one_did_not_finish(
    make_app: MakeApp,
) -> None:
    app = make_app(APP)
    hook, package = app / "assistants/a/index.ts", app / "assistants/a/package.yao"
    before = stamps(app)
    with anyio.fail_after(60):
        async with aclosing(changes(app, before)) as batches:
            hook.write_text("22", encoding="utf-8")
            assert await anext(batches) == {hook}
            package.write_text("{ }", encoding="utf-8")
            assert await anext(batches) == {package}
        async with aclosing(changes(app, before)) as batches:
            assert await anext(batches) == {package}


async def test_files_in_new_folders_are_reported(make_app: MakeApp) -> None:
    app = make_app(APP)
    made = [
        app / "assistants/b/package.yao",
        app / "assistants/b/lib/deep/x.ts",
        app / "models/m.mod.yao",
    ]
    async with watched(app) as receive:
        for path in made:
            path.parent.mkdir(parents=True)
            path.write_text("{}", encoding="utf-8")
        assert await seen(receive, set(made)) == set(made)
        made[-1].write_text("{ }", encoding="utf-8")
        await seen(receive, {made[-1]})


def test_files_that_are_no_part_of_the_app_are_left_aside(make_app: MakeApp) -> None:
    aside = (".hidden", "x.ts~", "x.swp", "node_modules/x.ts", "tests/x.test.ts", ".git/config")
    app = make_app(
        {
            **APP,
            **{f"assistants/a/{name}": "" for name in aside},
            "README.md": "",
            ".groundhook/x": "",
        }
    )
    assert {path.relative_to(app).as_posix() for path in stamps(app)} == set(APP)

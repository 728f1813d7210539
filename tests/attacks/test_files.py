"""Packages that reach for files outside, and a cache of compiled files that somebody has written
into."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.conftest import Arena, Fate

SECRET = "the secret outside"


@pytest.fixture
def secret(arena: Arena) -> Path:
    """A file beside the packages, and every way to it that a package could hold."""
    path = arena.app / "secret.json"
    path.write_text(json.dumps({"secret": SECRET}), encoding="utf-8")
    (arena.app / "secret.ts").write_text(f"export const secret = '{SECRET}';", encoding="utf-8")
    package = arena.app / "assistants/hostile"
    for name, target in {
        "link.json": path,
        "folder": arena.app,
        "loop.ts": package / "loop.ts",
    }.items():
        if not (package / name).is_symlink():
            (package / name).symlink_to(target)
    if not (package / "pipe.ts").exists():
        os.mkfifo(package / "pipe.ts")
    return path


IMPORTS = {
    "parent": "../../secret.json",
    "parent-without-ending": "../../secret",
    "through-itself": "./x/../../../secret.json",
    "link": "./link.json",
    "linked-folder": "./folder/secret.json",
    "mapped": "@out/secret",
    "mapped-to-the-root": "@root/etc/passwd",
    "linked-folder-typescript": "./folder/secret",
    "loop": "./loop",
    "pipe": "./pipe",
    "encoded": "./%2e%2e/%2e%2e/secret.json",
    "backslashes": ".\\\\..\\\\..\\\\secret.json",
    "file-url": "file:///etc/passwd",
    "absolute": "/etc/passwd",
    "home": "~/.ssh/id_rsa",
    "process": "/proc/self/environ",
    "nul": "./secret\\0/../../../secret.json",
    "long": "./" + "a" * 5000,
    "deep": "./" + "a/" * 3000 + "b",
    "half-a-pair": "./\\ud800",
    "node": "node:fs",
    "url": "https://example.org/x.js",
    "empty": "",
    "neighbour": "../neighbour/index",
}


@pytest.mark.parametrize("way", IMPORTS)
async def test_an_import_that_leads_outside_the_package_is_refused(
    arena: Arena, secret: Path, way: str
) -> None:
    fate = await arena.attack(
        f"import found from '{IMPORTS[way]}';\nfunction Create() {{ return {{ metadata: {{ found }}"
        " }; }"
    )
    assert fate.code == "hook_syntax"
    assert (fate.errors[0].file, fate.errors[0].line) == ("assistants/hostile/index.ts", 2)
    assert SECRET not in "".join(event.model_dump_json() for event in fate.events)


async def test_the_id_of_an_assistant_probes_no_folder(arena: Arena) -> None:
    fates = [
        await arena.attack(
            f"function Create() {{ return {{ delegate: {{ agent_id: '{id}' }} }}; }}"
        )
        for id in ("/etc", "/no-such-folder", "...etc", "x" * 5000)
    ]
    assert {fate.code for fate in fates} == {"hook_return"}
    assert len({fate.errors[0].hint for fate in fates}) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "number too long"),
        ('{"a": NaN, "b": }', "is not JSON"),
        ('"' + "x" * 9_000_000 + '"', "is larger than 8 MB"),
    ],
    ids=["deep", "long-number", "no-json", "large"],
)
async def test_a_hostile_json_file_of_a_package_is_refused_with_its_name(
    arena: Arena, content: str, text: str
) -> None:
    (arena.app / "assistants/hostile/data.json").write_text(content, encoding="utf-8")
    fate = await arena.attack(
        "import data from './data.json';\nfunction Create() { return { metadata: { n: data.length }"
        " }; }"
    )
    assert fate.code == "hook_syntax"
    assert text in fate.message
    assert fate.errors[0].file == "assistants/hostile/data.json"


async def test_source_that_overwhelms_the_compiler_is_an_error_of_its_package(arena: Arena) -> None:
    fate = await arena.attack(
        "function Create() { return " + "(" * 200_000 + "1" + ")" * 200_000 + "; }"
    )
    assert fate.code in ("hook_crashed", "hook_syntax")
    assert (
        await arena.attack("function Create() { return { metadata: { n: 1 } }; }")
    ).metadata == {"n": 1}


REACHING = {
    "code": "exports.a = require('../../secret.json')",
    "mappings": "",
    "requires": [["../../secret.json", 0, 0]],
    "digest": "x",
}


def _instead(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


TAMPERED: dict[str, Callable[[Path, bytes], object]] = {
    "swapped": lambda path, other: path.write_bytes(other),
    "cut": lambda path, _: path.write_bytes(path.read_bytes()[:-20]),
    "changed": lambda path, _: path.write_bytes(path.read_bytes().replace(b"honest", b"forged")),
    "numbers": lambda path, _: path.write_bytes(
        b'{"code": 5, "mappings": [], "requires": 3, "digest": ""}'
    ),
    "outside": lambda path, _: path.write_text(json.dumps(REACHING), encoding="utf-8"),
    "deep": lambda path, _: path.write_text("[" * 100_000, encoding="utf-8"),
    "bytes": lambda path, _: path.write_bytes(b"\xff\xfe\x00"),
    "folder": lambda path, _: _instead(path, Path.mkdir),
    "link": lambda path, _: _instead(path, lambda where: where.symlink_to("/dev/zero")),
    "pipe": lambda path, _: _instead(path, os.mkfifo),
}


@pytest.mark.parametrize("how", TAMPERED)
async def test_a_compiled_file_that_was_tampered_with_is_compiled_again(
    arena: Arena, how: str
) -> None:
    cache = arena.app / ".groundhook/hooks"
    arena.write("function Create() { return { metadata: { text: 'forged' } }; }")
    known = set(cache.iterdir())
    await arena.turn("hostile", "make the other entry")
    (other,) = (path for path in set(cache.iterdir()) - known if path.suffix == ".json")
    entry, before = (
        arena.write("function Create() { return { metadata: { text: 'honest' } }; }"),
        set(cache.iterdir()),
    )
    assert Fate(await arena.turn("hostile", "make the entry")).metadata == {"text": "honest"}
    (kept,) = (path for path in set(cache.iterdir()) - before if path.suffix == ".json")
    TAMPERED[how](kept, other.read_bytes())
    os.utime(entry, ns=(1, 1))  # looked at again
    fate = Fate(await arena.turn("hostile", "hello"))
    assert fate.metadata == {"text": "honest"}
    assert SECRET not in "".join(event.model_dump_json() for event in fate.events)
    await arena.neighbour()


async def test_the_cache_is_not_written_through_a_link(arena: Arena) -> None:
    cache = arena.app / ".groundhook/hooks"
    victim = arena.app / "victim.txt"
    victim.write_text("untouched", encoding="utf-8")
    source = "function Create() { return { metadata: { text: 'written' } }; }"
    path, known = arena.write(source), set(cache.iterdir())
    await arena.turn("hostile", "make the entry")
    (kept,) = (entry for entry in set(cache.iterdir()) - known if entry.suffix == ".json")
    kept.unlink()
    kept.with_suffix(f".{os.getpid()}").symlink_to(victim)
    os.utime(path, ns=(2, 2))
    assert Fate(await arena.turn("hostile", "hello")).metadata == {"text": "written"}
    assert victim.read_text(encoding="utf-8") == "untouched"

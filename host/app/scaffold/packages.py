"""Creates new assistants from templates.

The templates are in the folders `assistant` and `app` of this package; `@@id@@` is replaced by the
id, `@@name@@` by its last step. Refuses to overwrite files. Does not know what the files mean; a
test opens a created app.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from groundhook.core.errors import StorageError, UsageError
from groundhook.host.config.tree import PARTS, has_package

_STEP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def new_assistant(root: Path, id: str) -> list[str]:
    """Write an assistant into the app at `root`, with the files of an app if the folder is not one
    yet, and return the paths of the written files relative to `root`. Raises UsageError for an
    invalid id or an existing file, StorageError."""
    folder = f"assistants/{'/'.join(_split_id(root, id))}"
    if has_package(root / folder):
        raise UsageError(
            f"the assistant {id!r} exists already, in {folder!r}",
            hint="choose another id, or remove that folder",
        )
    texts = {f"{folder}/{name}": text for name, text in _fill_templates("assistant", id).items()}
    taken = [name for name in texts if (root / name).exists()]
    if taken:
        raise UsageError(
            f"{taken[0]!r} exists already, and nothing was written",
            hint="choose another id, or move that file",
        )
    own = (
        {}
        if (root / "agent").exists()
        else {n: text for n, text in _fill_templates("app", id).items() if not (root / n).exists()}
    )
    for name, text in {**own, **texts}.items():
        _write(root, name, text)
    return [*own, *texts]


def _split_id(root: Path, id: str) -> list[str]:
    steps = id.split(".")
    for step in steps:
        if not _STEP.fullmatch(step):
            hint = (
                "steps of letters, digits, - and _, with points between them: helper, team.helper"
            )
            raise UsageError(f"{id!r} cannot be the id of an assistant", hint=hint)
    for count, step in enumerate(steps):
        owners = (root.joinpath("assistants", *steps[:depth]) for depth in range(1, count + 1))
        if step in PARTS and any(map(has_package, owners)):
            raise UsageError(
                f"{id!r} cannot be the id of an assistant: {step!r} is a folder of a package",
                hint="choose another",
            )
    return steps


def _fill_templates(template: str, id: str) -> dict[str, str]:
    """Path → text."""
    values = {"id": id, "name": id.rpartition(".")[2]}
    return {
        _replace_placeholders(name, values): _replace_placeholders(text, values)
        for name, text in _walk(files("groundhook.host.app.scaffold") / template)
    }


def _replace_placeholders(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"@@(\w+)@@", lambda found: values[found[1]], text)


def _walk(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_text(encoding="utf-8")


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise StorageError(f"{str(path)!r} cannot be written: {exc.strerror}") from exc

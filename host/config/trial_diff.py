"""A trial as a change of the assistant's files: what to write into them to keep it. Pure."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groundhook.host.config.locations import Path
from groundhook.host.config.package import Package
from groundhook.host.config.tree import PROMPTS
from groundhook.host.config.trial import Trial
from groundhook.host.config.validate import ValidDocument
from groundhook.host.config.yaml12 import write_yaml


def trial_diff(package: Package, trial: Trial) -> list[tuple[str, str]]:
    """Return the files that a trial changes, each as (name, unified diff). The lines of package.yao
    are those of its values without comments, so that a diff is to be read and pasted; prompts.yml
    is written anew."""
    checked = package.layer.checked
    if checked is None:
        return []
    before = checked.document.data
    after = copy.deepcopy(before)
    for path, value in _changes(package, trial):
        _set(after, _written(checked, path), value)
    found = []
    prompts = trial.shown.get("prompts")
    if prompts is not None and "prompts" in before:
        after["prompts"] = prompts
        prompts = None
    if prompts is not None:
        file = package.folder / PROMPTS
        old = file.read_text(encoding="utf-8") if file.is_file() else ""
        found.append((PROMPTS, old, _prompts_text(prompts)))
    name = checked.document.file.rpartition("/")[2]
    write = _pretty if name.endswith(".yao") else write_yaml
    found.append((name, write(before), write(after)))
    return [
        (name, _diff(f"{package.shown}/{name}", old, new)) for name, old, new in found if old != new
    ]


def trial_changes(package: Package, trial: Trial) -> list[dict[str, Any]]:
    """Return the settings that a trial changes: [{key, before, after}]. `before` is the value of
    package.yao, null if it has none."""
    return [
        {"key": ".".join(path), "before": _get(package.layer.data, path), "after": value}
        for path, value in _changes(package, trial)
    ]


def _changes(package: Package, trial: Trial) -> Iterator[tuple[tuple[str, ...], Any]]:
    for path, value in _leaves(trial.layer.data, ()):
        if _get(package.layer.data, path) != value:
            yield path, value


def _leaves(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, (*path, key))
        else:
            yield (*path, key), inner


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _written(checked: ValidDocument, path: Path) -> Path:
    """Return the path as the file spells it. A source that is switched on by a word alone (`kb:
    true`) becomes an object."""
    written = checked.normal.written(path)
    return path if len(written) < len(path) else written


def _set(data: dict[str, Any], path: Path, value: Any) -> None:
    for step in path[:-1]:
        inner = data.get(str(step))
        if not isinstance(inner, dict):
            inner = {"enabled": inner} if isinstance(inner, bool) else {}
            data[str(step)] = inner
        data = inner
    data[str(path[-1])] = value


def _pretty(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _prompts_text(prompts: str | Sequence[Mapping[str, Any]]) -> str:
    every = [{"role": "system", "content": prompts}] if isinstance(prompts, str) else prompts
    return "".join(_prompt_text(each) for each in every)


def _prompt_text(prompt: Mapping[str, Any]) -> str:
    content, role = str(prompt.get("content", "")), str(prompt.get("role", "system"))
    lines = content.rstrip("\n").split("\n")
    if lines[0][:1] in ("", " ") or not all(line.isprintable() for line in lines):
        # A string of JSON is one of YAML: for what a block of lines cannot hold.
        return f"- role: {role}\n  content: {json.dumps(content, ensure_ascii=False)}\n"
    block = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return f"- role: {role}\n  content: |\n{block}"


def _diff(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines) + "\n"

"""Prompts of an assistant or of the whole app: `prompts.yml`, presets, and the `prompts` key of
package.yao."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from groundhook.core.types.base import Value
from groundhook.core.types.turn import Message
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.environment import Environment
from groundhook.host.config.locations import Node, Parsed
from groundhook.host.config.validate import read_value
from groundhook.host.config.variables import insert_assets

Prompts = tuple[Message, ...]


class _OpeningMessage(Value):
    """A message that is put before the conversation."""

    role: Literal["system", "developer", "user", "assistant"] = "system"
    content: str
    name: str | None = None


class _List(Value):
    prompts: tuple[_OpeningMessage, ...]


class _Presets(Value):
    prompts: dict[str, tuple[_OpeningMessage, ...]]


def read_prompts(path: Path, shown: str, environment: Environment, folder: Path) -> Prompts:
    """Return the prompts of a file with a list of {role, content}. `folder` is that of the package,
    in which `assets/` is. Raises ConfigError."""
    document = read_document(path, shown, top="list")
    parsed = document.parsed
    around = Parsed(
        {"prompts": document.data}, lambda: Node(0, 0, {"prompts": parsed.index()}), parsed.repeated
    )
    return _messages(
        read_value(_List, replace(document, data=around.data, parsed=around), environment).prompts,
        folder,
    )


def inline_prompts(
    document: ConfigDocument, environment: Environment, folder: Path
) -> Mapping[str, Prompts]:
    """Return the `prompts` of a package.yao by preset; a list without a name is `default`. Raises
    ConfigError."""
    written = document.data.get("prompts")
    if written is None:
        return {}
    if isinstance(written, str):
        written = [{"role": "system", "content": written}]
    alone = replace(document, data={"prompts": written})
    if isinstance(written, Mapping):
        presets = read_value(_Presets, alone, environment).prompts
        return {name: _messages(prompts, folder) for name, prompts in presets.items()}
    return {"default": _messages(read_value(_List, alone, environment).prompts, folder)}


def _messages(prompts: tuple[_OpeningMessage, ...], folder: Path) -> Prompts:
    return tuple(
        Message(role=prompt.role, content=insert_assets(prompt.content, folder), name=prompt.name)
        for prompt in prompts
    )

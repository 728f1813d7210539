"""The content of `*.toolkit.yao`: a toolkit and the settings of its type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import Field

from groundhook.core.errors import UnknownName
from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.collection_spec import PermissionSpec
from groundhook.core.types.turn import Message

_Settings = TypeVar("_Settings", bound="ToolkitSettings")


class ToolkitSettings(Value):
    """The keys that every toolkit's file may have. The type of a toolkit subclasses it with keys of
    its own, with defaults and descriptions."""

    label: str = ""
    type: str = Field(
        min_length=1, description="`learning`, `catalogue`, `documents`, `memory`, or a plug-in's"
    )
    permission: PermissionSpec = defaults_of(PermissionSpec)
    deadline_ms: int | None = Field(
        default=None, ge=1, description="Deadline of one call (default: the tool's own)"
    )


class ReadSettings(Protocol):
    """Reads a toolkit's file as the settings of its type."""

    def __call__(self, model: type[_Settings], /) -> _Settings:
        """Return the whole file as `model`, with `$ENV.NAME` replaced. Raises ConfigError for
        every wrong or unknown key, with file, line and column, and for a variable that is not
        set."""
        ...


def _refuse_prompts(name: str) -> tuple[Message, ...]:
    raise UnknownName("prompt preset", name, ())


@dataclass(frozen=True, kw_only=True)
class ToolkitSpec:
    """A declared toolkit. `id` follows from the file's path: `catalogue`, or
    `agents.shop.catalogue` for `assistants/shop/toolkits/catalogue.toolkit.yao`.

    `assistant` is the id of the assistant whose folder has the file ("": the app's). `folder` is
    that assistant's folder, or the app's: files that the settings name are relative to it. `shown`
    is the path of the file in messages. `common` are the keys that every type has;
    `read(CatalogueSettings)` returns the whole file as the settings of its type;
    `prompts("ranker")` returns the messages of `prompts/ranker.yml` in the folder, and raises
    UnknownName and ConfigError."""

    id: str
    assistant: str
    folder: Path
    shown: str
    common: ToolkitSettings
    read: ReadSettings = field(repr=False, compare=False)
    prompts: Callable[[str], tuple[Message, ...]] = field(
        default=_refuse_prompts, repr=False, compare=False
    )
    # Of the file and of its prompts: a toolkit is made again when one of them has changed.
    text: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The toolkit's part of a tool's canonical name: `catalogue` of
        `catalogue.searchDatasets`."""
        return self.id.rpartition(".")[2]

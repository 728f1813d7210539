"""Values of a sync: its settings, its progress, and its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from groundhook.core.types.base import Value

SyncMode = Literal["full", "changes"]

_EVERY = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class SyncSettings(Value):
    """The synchronisation of a toolkit with its source."""

    page: int = Field(default=100, ge=1, le=1000, description="Records requested at a time")
    every: str = Field(
        default="",
        description="How often a host that stays open syncs: `30m`, `6h`, `1d`; empty: never",
    )
    remove_at_most: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Largest share of the records that one sync removes without `--force`",
    )

    @field_validator("every")
    @classmethod
    def _readable(cls, every: str) -> str:
        if every and not _EVERY.fullmatch(every):
            raise ValueError(f"{every!r} is not a time such as 30m, 6h or 1d")
        return every

    @property
    def every_s(self) -> int:
        """Seconds between two syncs; 0: none are scheduled."""
        match = _EVERY.fullmatch(self.every)
        return int(match[1]) * _SECONDS[match[2]] if match else 0


@dataclass(frozen=True, kw_only=True)
class SyncProgress:
    """The progress of a sync: `done` of `total` records were read (`total` is the source's
    count)."""

    toolkit: str
    mode: SyncMode
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The result of a sync. The numbers count records: `listed` by the source, and of these
    `added`, `changed`, `unchanged` and `failed`; `removed` from the index; `folded`, omitted
    because others of the listing are the same; `known`, in the index now. `mode`: whether
    everything was listed, or only what changed; `resumed`: an interrupted sync was continued;
    `noun`: the name of the records, in the plural."""

    toolkit: str
    mode: SyncMode
    noun: str = "records"
    resumed: bool = False
    listed: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    removed: int = 0
    folded: int = 0
    known: int = 0
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class SyncStatus:
    """The state of a toolkit's syncs. Moments are ISO 8601 in UTC, "" if there was none.
    `listed_at` is the last complete listing, `interrupted`: the last sync did not end, and the next
    one continues it; `running` is the process that syncs at this moment, 0 if none does; `every` is
    the time between two syncs of a host that stays open."""

    toolkit: str
    records: int = 0
    succeeded_at: str = ""
    listed_at: str = ""
    failed_at: str = ""
    error: str = ""
    interrupted: bool = False
    running: int = 0
    every: str = ""

"""The tools of a turn, and how the calls of a model run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groundhook.core.types.events import HookJournal
from groundhook.host.tools.offers import ScopeOf
from groundhook.host.tools.toolbox import Toolbox

if TYPE_CHECKING:
    # A turn without a kept chat does not need it at run time.
    from groundhook.core.types.chats import Decision


@dataclass(frozen=True, kw_only=True)
class Tooling:
    """The tools of a turn, and how their calls run: in at most `rounds` rounds, or without `loop`
    in one round, after which the model does not answer again. The model gets at most `result_bytes`
    of each result. Citable results are put between lines with `fence`; `ask_to_cite`: the model is
    instructed to cite them. `client` are the client's own tools: a call of one ends the turn.
    `confirm` names tools whose calls the user has to approve; without `can_ask` these fail.
    `decided` are calls of an earlier turn that the user has decided about, which run first."""

    toolbox: Toolbox
    scope_of: ScopeOf
    rounds: int
    result_bytes: int
    fence: str
    loop: bool = True
    ask_to_cite: bool = True
    client: Sequence[Mapping[str, Any]] = ()
    confirm: Sequence[str] = ()
    can_ask: bool = False
    decided: Sequence[Decision] = ()
    assistant_id: str = ""
    journal: HookJournal = ()

    @property
    def client_names(self) -> frozenset[str]:
        return frozenset(tool["function"]["name"] for tool in self.client)

"""`ctx.trace` for the hooks of one assistant: `core.hook_services.HookTrace` over the trace of
the turn.

Nodes stay known for the whole turn, so that Next can add to those that Create began. Nodes that are
open when a hook ends are closed then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from groundhook.core.channel import Channel
from groundhook.core.errors import UsageError
from groundhook.core.trace import Span, open_span

LEFT_OPEN = "the hook failed before it closed this node"


@dataclass
class HookNodes:
    """The nodes that one run's hooks have added, by id; "" is the own node of the running hook."""

    channel: Channel
    _nodes: dict[str, Span] = field(default_factory=dict)
    _made: int = 0
    _own_ended: bool = False  # the running hook has ended its own node, whose span stays open

    @contextmanager
    def under(self, own: Span) -> Iterator[None]:
        """Make `own` the node of the hook that runs in the block."""
        self._nodes[""] = own
        self._own_ended = False
        try:
            yield
        except BaseException:
            self._close_open(LEFT_OPEN)
            raise
        else:
            self._close_open(None)

    async def add(self, parent: str, type: str, label: str, data: Mapping[str, Any], /) -> str:
        node = open_span(type, label, parent=self._find_node(parent), data=dict(data))
        self._made += 1
        id = node.id or f"h{self._made}"  # without a recorder, nodes have no ids
        self._nodes[id] = node
        await self.channel.wait_for_reader()
        return id

    async def log(self, node: str, level: str, message: str, /) -> None:
        open_span("log", message, parent=self._find_node(node), data={"level": level}).close()
        await self.channel.wait_for_reader()

    async def note(self, node: str, data: Mapping[str, Any], /) -> None:
        found = self._find_node(node)
        found.data.update(data)
        found.report()
        await self.channel.wait_for_reader()

    async def close(self, node: str, error: str | None, /) -> None:
        """Close a node, failed when there is an `error`. The span of the hook's own node stays open
        until the hook ends, and keeps its failure until then."""
        found = self._find_node(node)
        if error is not None:
            found.fail(error)
        elif found.status == "failed":
            found.status = "running"
            found.data.pop("error", None)
        if node:
            found.close()
        else:
            self._own_ended = True
        await self.channel.wait_for_reader()

    def is_complete(self, node: str, /) -> bool:
        ended = self._find_node(node).status != "running"
        return ended or (not node and self._own_ended)

    def _find_node(self, id: str) -> Span:
        if id not in self._nodes:
            raise UsageError(f"no trace node {id!r} in this turn")
        return self._nodes[id]

    def _close_open(self, error: str | None) -> None:
        for id, node in reversed(self._nodes.items()):
            if id and node.status == "running":
                if error is not None:
                    node.fail(error)
                node.close()

"""`ctx.memory` for the hooks of one turn: `core.hook_services.HookMemory` over the app's
memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundhook.core.errors import NotPermitted
from groundhook.core.hook_services import MemoryOperation
from groundhook.host.chats.memory.lists import OPERATIONS
from groundhook.host.chats.memory.memory import Namespaces


@dataclass(frozen=True)
class TurnMemory:
    """Runs the operations of one turn's hooks. Each turn has its own, so that the space `context`
    begins empty."""

    namespaces: Namespaces

    async def do(self, space: str, operation: MemoryOperation, /, *arguments: Any) -> Any:
        try:
            namespace = self.namespaces.namespace(space)
        except NotPermitted as exc:
            raise NotPermitted(f"not permitted: {exc.message}", hint=exc.hint) from exc
        if operation in OPERATIONS:
            return await namespace.change_list(operation, *arguments)
        return await getattr(namespace, operation)(*arguments)

"""A language model with fixed answers, behind the host's real delegates."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundhook.core.errors import ModelError, UnknownName
from groundhook.core.ports import Scope, SourceResult
from groundhook.core.readers.json_in_text import extract_json_aside
from groundhook.core.tool_ports import ModelReply
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity, Message
from groundhook.core.types.uses import JsonReply
from groundhook.host.turn.delegation import DelegateTargets, TurnDelegates
from tests.db.conftest import Shop

BY = "connector:small"


@dataclass
class AskedModel:
    """Answers in order; the last answer again when there are no more. An error is raised."""

    answers: Sequence[Any]
    calls: list[Sequence[Message]] = field(default_factory=list)
    replies: list[JsonReply] = field(default_factory=list)
    before: Callable[[], Awaitable[None]] | None = None

    async def complete(
        self, connector: str, messages: Sequence[Message], reply: JsonReply, _: int | None
    ) -> ModelReply:
        assert connector == "small"
        self.calls.append(messages)
        self.replies.append(reply)
        if self.before is not None:
            await self.before()
        answer = self.answers[min(len(self.calls), len(self.answers)) - 1]
        if isinstance(answer, ModelError):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return ModelReply(text=text, data=await extract_json_aside(text), finish_reason="stop")

    @property
    def system(self) -> str:
        return self.calls[0][0].text

    @property
    def user(self) -> str:
        return self.calls[0][1].text

    def problem(self, call: int = 1) -> str:
        """The correction that a later call begins with."""
        return self.calls[call][-1].text

    def delegates(self) -> TurnDelegates:
        async def assistant(id: str, text: Any, reply: JsonReply) -> tuple[StreamEnd, str]:
            raise UnknownName("assistant", id, [])

        return TurnDelegates(
            DelegateTargets(
                model=self.complete,
                assistant=assistant,
                server=lambda name: name,
                permit=lambda *_: None,
                servers=_NoServers(),
            )
        )


class _NoServers:
    async def ask(self, server: str, *_: Any, **__: Any) -> dict[str, Any]:
        raise UnknownName("MCP server", server, [])

    def start_ms(self, server: str) -> int:
        return 0


async def ask(
    shop: Shop,
    model: AskedModel,
    question: str,
    *models: str,
    by: str = "auto",
    identity: Identity | None = None,
    timeout_ms: int = 60_000,
    **request: Any,
) -> SourceResult:
    """Search with this model as the assistant's own, or named by `uses.query`."""
    plain = shop.scope(identity)
    query = plain.settings.query.model_copy(update={"timeout_ms": timeout_ms})
    scope: Scope = replace(
        plain,
        settings=plain.settings.model_copy(update={"query": query}),
        uses=plain.uses.model_copy(update={"query": by}),
        delegates=model.delegates(),
        connector=BY,
    )
    raw: Mapping[str, Any] = {"type": "db", "query": question, "models": models, "limit": 50}
    return await shop.database.search(SearchRequest.model_validate({**raw, **request}), scope)

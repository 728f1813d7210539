"""The tools of a turn, of the host, of toolkits and of MCP servers, and their calls.

`Toolbox.call` is the one place where the failure of a tool becomes data, for every caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread

from groundhook.core.errors import (
    HostError,
    ModelError,
    NotFound,
    NotPermitted,
    ServerError,
    SourceError,
    SourceRateLimited,
    SourceTimeout,
    UnknownName,
    UsageError,
    suggestion,
)
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.json_text import DEEPEST, NestedTooDeeply, NotJson
from groundhook.core.ports import ToolDelta
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.tools import (
    Tool,
    ToolErrorCode,
    ToolOutcome,
    homonyms_of,
    nearest_first,
)
from groundhook.host.tools.mcp.shapes import parse_json
from groundhook.host.tools.offers import ScopeOf, ToolAnswer, ToolOffer, WrongArguments
from groundhook.host.tools.python import offer_of


@dataclass
class Toolbox:
    """The tools of a turn, by the names under which they are offered. `problems` are the errors of
    toolkits that cannot be made, by name. `canonical`: whether the error for an unknown tool lists
    canonical names, for people and programs, in place of the offered ones, for models."""

    offers: dict[str, ToolOffer] = field(default_factory=dict)
    problems: Mapping[str, HostError] = field(default_factory=dict)
    canonical: bool = False
    _aliases: dict[str, ToolOffer] = field(default_factory=dict)

    @staticmethod
    def of(
        tools: Iterable[Tool | ToolOffer] = (), problems: Mapping[str, HostError] | None = None
    ) -> Toolbox:
        """Return a toolbox of these tools. Raises ValueError for two tools of one name."""
        made = Toolbox(problems=problems or {})
        for tool in tools:
            offer = offer_of(tool) if isinstance(tool, Tool) else tool
            if offer.name in made.offers:
                raise ValueError(f"tool {offer.name!r} is already registered")
            made.offers[offer.name] = offer
        for offer in made.offers.values():
            for alias in (*offer.aliases, offer.canonical):
                made._aliases.setdefault(alias, offer)
        return made

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    @property
    def names(self) -> Collection[str]:
        """The names under which tools are offered."""
        return [name for name, offer in self.offers.items() if not offer.withheld]

    @property
    def cites(self) -> bool:
        """Whether results of the tools may have items to cite."""
        return any(offer.cites for offer in self.offers.values() if not offer.withheld)

    def find(self, name: str) -> ToolOffer | None:
        """Return the tool by its offered, qualified or canonical name."""
        return self.offers.get(name) or self._aliases.get(name)

    def schemas(self) -> list[Mapping[str, Any]]:
        """Return the offered tools in the format of OpenAI's chat completions API."""
        return [offer.schema for offer in self.offers.values() if not offer.withheld]

    def joined(self, offers: Iterable[ToolOffer]) -> Toolbox:
        """Return a toolbox with more tools; one whose name is taken is omitted."""
        return Toolbox.of(
            [*self.offers.values(), *(offer for offer in offers if offer.name not in self.offers)],
            self.problems,
        )

    async def waits_for_approval(
        self, call: ToolDelta, confirm: Collection[str], scope_of: ScopeOf
    ) -> dict[str, Any] | None:
        """Return the arguments of a model's call that would run, if the user has to approve it
        first: by its tool, or by the names in `confirm` (`*`: every tool that does more than read).
        None for any other call, also for one that fails without running."""
        offer = self.find(call.name)
        if offer is None or offer.withheld or not _needs_approval(offer, confirm):
            return None
        scope = scope_of(offer, call.id, [])
        if offer.refusal(scope.identity, scope.metadata):
            return None
        try:
            arguments = parse_arguments(call.arguments)
            # A check may change the arguments, and the user approves those of the model.
            await to_thread.run_sync(offer.check, dict(arguments))
        except ValueError:
            return None
        return arguments

    async def call(
        self, call_id: str, name: str, arguments: str | Mapping[str, Any], scope_of: ScopeOf
    ) -> ToolOutcome:
        """Run one call and return its outcome. Arguments are an object, or the JSON text of a
        model. A failed call has `error`, in words from which a model can correct it."""
        began = time.perf_counter()
        offer = self.find(name)
        warnings: list[str] = []
        changes: dict[str, Any] = {}
        try:
            parsed = parse_arguments(arguments) if isinstance(arguments, str) else arguments
            if not isinstance(parsed, Mapping):
                raise WrongArguments("the arguments are not a JSON object")
            changes["arguments"] = parsed = dict(parsed)
            if offer is None:
                raise self._make_unknown_error(name)
            with unwrap_exception_groups():
                answered = await _check_and_run(offer, parsed, scope_of(offer, call_id, warnings))
            text = answered.text or text_of(answered.result)
            changes |= {"result": answered.result, "text": text, "items": tuple(answered.items)}
        # Tools raise ValueError and TimeoutError for the model to read; anything else is a bug.
        except (HostError, ValueError, TimeoutError) as exc:
            message = str(exc) or "the tool did not answer in time"
            changes |= {
                "error": message,
                "text": text_of({"error": message}),
                "code": _find_code(exc),
            }
        return ToolOutcome(
            toolcall_id=call_id,
            server=offer.server if offer else "",
            tool=offer.tool if offer else name,
            name=offer.name if offer else name,
            toolkit=offer.toolkit_name if offer else "",
            warnings=tuple(warnings),
            duration_ms=int((time.perf_counter() - began) * 1000),
            **changes,
        )

    def _make_unknown_error(self, name: str) -> HostError:
        owner = name.partition("__")[0] if "__" in name else name.rpartition(".")[0]
        for known, problem in self.problems.items():
            if owner and f".{known}".endswith(f".{owner}"):
                return problem
        offered = [offer.canonical for offer in self.offers.values() if not offer.withheld]
        every = list(dict.fromkeys([*self.names, *self._aliases]))
        hint = homonyms_of(name, offered) or suggestion(name, every)
        if not hint.startswith(("did you mean", "several")):
            hint = suggestion(name, nearest_first(name, offered if self.canonical else self.names))
        if self.problems and not hint.startswith("did you mean"):
            known, problem = next(iter(self.problems.items()))
            hint = f"{hint}; {known!r} offers none: {problem}"
        return UnknownName("tool", name, every, hint=hint)


def _needs_approval(offer: ToolOffer, confirm: Collection[str]) -> bool:
    if offer.confirm or {offer.name, offer.canonical, *offer.aliases} & set(confirm):
        return True
    return "*" in confirm and not offer.reads_only


class _NotOffered(UsageError):
    """The tool exists, and is not offered in this turn."""


async def _check_and_run(
    offer: ToolOffer, arguments: dict[str, Any], scope: ToolScope
) -> ToolAnswer:
    """Check and run a call. Raises NotPermitted first, then ValueError for the arguments,
    TimeoutError at the tool's deadline, and the tool's own errors."""
    if offer.withheld:
        raise _NotOffered(f"{offer.tool}: {offer.withheld}")
    if refusal := offer.refusal(scope.identity, scope.metadata):
        raise NotPermitted(f"not permitted: {refusal}")
    # A thread costs a third of a millisecond, and more where the processor is busy.
    checked = (
        await to_thread.run_sync(offer.check, arguments)
        if offer.slow_check
        else offer.check(arguments)
    )
    if not offer.deadline_ms:
        return await offer.run(checked, scope)
    with anyio.move_on_after(offer.deadline_ms / 1000) as deadline:
        return await offer.run(checked, scope)
    assert deadline.cancelled_caught
    raise TimeoutError(f"{offer.tool} did not answer within {offer.deadline_ms} ms")


def _find_code(error: Exception) -> ToolErrorCode:
    match error:
        case NotPermitted():
            return "not_permitted"
        case _NotOffered():
            return "not_offered"
        case WrongArguments():
            return "wrong_arguments"
        case UnknownName() if error.message.startswith("no tool "):
            return "unknown_tool"
        case NotFound():
            return "not_found"
        case TimeoutError() | SourceTimeout():
            return "timeout"
        case SourceRateLimited():
            return "rate_limited"
        case SourceError() | ServerError() | ModelError():
            return "service"
        case _:
            return "failed"


def text_of(value: Any) -> str:
    """Return a result as text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # only tools of the host can return such a value
        return '{"error": "the result of the tool is nested too deeply, or contains itself"}'


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call, the JSON text of a model. Raises ValueError with a text for
    the model."""
    try:
        value = parse_json(text or "{}")
    except NestedTooDeeply as exc:
        raise WrongArguments(
            f"the arguments are nested too deeply: at most {DEEPEST} levels"
        ) from exc
    except NotJson as exc:
        raise WrongArguments(f"the arguments are not JSON: {exc}") from exc
    except UnicodeEncodeError as exc:
        raise WrongArguments("the arguments are not JSON: half a surrogate pair") from exc
    if not isinstance(value, dict):
        raise WrongArguments("the arguments are not a JSON object")
    return value

"""Every error Groundhook raises on purpose, in one tree.

    HostError
    ├── UsageError             wrong arguments from a caller; throws inside a hook as well
    │   ├── UnknownName        a name that is not there, with the nearest ones that are
    │   └── NotSupported       understood, and not offered by this version
    ├── ConfigError            a file of the app or of a package cannot be used
    │   └── ConfigErrors       several reasons at once, each with its place
    ├── PluginError            a plug-in cannot be loaded, or does not fit; the message names it
    ├── HookError              a hook failed
    │   ├── HookSyntaxError    the TypeScript does not compile, or an import cannot be resolved
    │   ├── HookTypeError      the hook does not fit its types; found by a check; it still runs
    │   ├── HookThrew          the hook threw, or its promise was rejected
    │   ├── HookReturnInvalid  what the hook returned has the wrong type
    │   ├── HookLimit          a limit was crossed (time, memory, calls, sizes)
    │   └── HookCrashed        the worker process that ran the hook died
    ├── SourceError            a search failed; becomes `error` on a result
    │   ├── SourceNotConfigured   no key, no provider, no such collection or model
    │   ├── SourceRefused         the key or the request was refused
    │   ├── SourceRateLimited     too many requests, or the plan's quota is used up
    │   ├── SourceTimeout         nothing in time
    │   ├── SourceMalformed       an answer that does not have the documented shape
    │   └── NotPermitted          identity missing or not enough; not the same as "no rows"
    ├── RerankError            a reranker failed; the merged order stays
    ├── DelegateError          a step of an assistant or MCP tool gave no usable answer
    ├── ModelError             the language model's answer cannot be had or was cut
    │   ├── ModelNotConfigured
    │   ├── ModelUnreachable
    │   ├── ModelRefused
    │   ├── ModelContextExceeded  the request is longer than the model's context
    │   ├── ModelStalled
    │   ├── ModelTruncated
    │   └── ModelGarbled
    ├── ServerError            an MCP server cannot be used; the message names the server
    │   ├── ServerNotConfigured   its command or its address leads nowhere
    │   ├── ServerUnreachable     it cannot be started or reached, or it ended early
    │   ├── ServerTimeout         it was not ready, or did not answer, in time
    │   ├── ServerMalformed       its answer is not MCP, or larger than allowed
    │   ├── ServerRefused         it answered with an error
    │   └── ToolFailed            the tool ran and reported a failure
    ├── IngestError            a document cannot be added
    ├── TooManyTurns           as many turns as the host takes are under way or waiting
    ├── StorageError           disk full, a store that cannot be opened or is in use
    └── WorkerDied             a child process of ours ended under a call

Errors of libraries are turned into these by one context manager at each edge, with `raise … from`;
above the edge nobody knows which library is below. Programming mistakes (TypeError, KeyError, …)
are not in the tree and are never caught on their behalf.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_NAME = 100  # characters of an unknown name that is compared with those that are known


@dataclass(frozen=True)
class Place:
    """Where in a file: path as the user would type it, line and column counted from 1 (0: not
    known)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file] + [str(n) for n in (self.line, self.column) if n]
        return ":".join(parts)


class HostError(Exception):
    """Something that went wrong outside the code of the host: says what, where, and what to do."""

    code = "host"

    def __init__(self, message: str, *, place: Place | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint}"


class UsageError(HostError):
    code = "usage"


class UnknownName(UsageError):
    """A name that is not known: `UnknownName("assistant", "dcos", ["docs"])`."""

    code = "unknown_name"

    def __init__(
        self,
        noun: str,
        name: str,
        known: Iterable[str],
        *,
        place: Place | None = None,
        hint: str = "",
    ) -> None:
        names = sorted(known)
        super().__init__(f"no {noun} {name!r}", place=place, hint=hint or suggestion(name, names))
        self.name = name


class NotSupported(UsageError):
    code = "not_supported"


class ConfigError(HostError):
    code = "config"


class ConfigErrors(ConfigError):
    """Everything that is wrong with a file, not only the first: `errors` has two or more, in the
    order of the file. `place` is that of the first; `str()` has one line for each."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.message}{more}", place=first.place, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class PluginError(HostError):
    code = "plugin"


class HookError(HostError):
    code = "hook"


class HookSyntaxError(HookError):
    code = "hook_syntax"


class HookTypeError(HookError):
    """`code` is TypeScript's own, such as TS2339."""

    def __init__(
        self, code: str, message: str, *, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.code = code


class HookThrew(HookError):
    code = "hook_threw"


class HookReturnInvalid(HookError):
    code = "hook_return"


class HookLimit(HookError):
    """A limit was crossed; `limit` is its key under `hooks.limits`."""

    code = "hook_limit"

    def __init__(
        self, limit: str, message: str, *, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.limit = limit


class HookCrashed(HookError):
    code = "hook_crashed"


class SourceError(HostError):
    """`again`: the same request may be sent once more, after `after` seconds where the source says
    how long."""

    code = "source"
    again = False
    after: float | None = None


class SourceNotConfigured(SourceError):
    code = "source_not_configured"


class SourceRefused(SourceError):
    code = "source_refused"


class SourceRateLimited(SourceError):
    code = "source_rate_limited"


class SourceTimeout(SourceError):
    code = "source_timeout"


class SourceMalformed(SourceError):
    code = "source_malformed"


class NotPermitted(SourceError):
    code = "not_permitted"


class RerankError(HostError):
    code = "rerank"


class DelegateError(HostError):
    code = "delegate"


class ModelError(HostError):
    """`again`: the same request may be sent once more, after `after` seconds where the endpoint
    names them."""

    code = "model"
    again = False
    after: float | None = None


class ModelNotConfigured(ModelError):
    code = "model_not_configured"


class ModelUnreachable(ModelError):
    code = "model_unreachable"


class ModelRefused(ModelError):
    code = "model_refused"


class ModelContextExceeded(ModelError):
    code = "model_context_exceeded"


class ModelStalled(ModelError):
    code = "model_stalled"


class ModelTruncated(ModelError):
    code = "model_truncated"


class ModelGarbled(ModelError):
    code = "model_garbled"


class ServerError(HostError):
    code = "server"


class ServerNotConfigured(ServerError):
    code = "server_not_configured"


class ServerUnreachable(ServerError):
    """`delivered`: whether the request may have reached the server before the connection was
    gone."""

    code = "server_unreachable"

    def __init__(
        self, message: str, *, delivered: bool = True, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.delivered = delivered


class ServerTimeout(ServerError):
    code = "server_timeout"


class ServerMalformed(ServerError):
    code = "server_malformed"


class ServerRefused(ServerError):
    code = "server_refused"


class ToolFailed(ServerError):
    code = "tool_failed"


class IngestError(HostError):
    code = "ingest"


class TooManyTurns(HostError):
    code = "too_many_turns"


class StorageError(HostError):
    code = "storage"


class WorkerDied(HostError):
    code = "worker_died"


def suggestion(name: str, known: Sequence[str]) -> str:
    """What to say after an unknown name: the nearest known one, or all of them when there are
    few."""
    near = (
        difflib.get_close_matches(name, known, n=1, cutoff=0.6) if len(name) <= LONGEST_NAME else []
    )
    if near:
        return f"did you mean {near[0]!r}?"
    if not known:
        return "none are known"
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"known: {shown}"

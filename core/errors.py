"""Every error Groundhook raises on purpose, in one tree.

    HostError
    ├── UsageError             wrong arguments of a caller; also thrown inside a hook
    │   ├── UnknownName        an unknown name; the hint has the nearest known one
    │   │   └── NotFound       what a call of a tool names does not exist for its identity
    │   └── NotSupported       understood, but not offered by this version
    ├── ConfigError            a file of the app or of a package cannot be used
    │   └── ConfigErrors       several reasons at once, each with its place
    ├── PluginError            a plug-in cannot be loaded, or does not fit; the message names it
    ├── HookError              a hook failed
    │   ├── HookSyntaxError    the TypeScript does not compile, or an import cannot be resolved
    │   ├── HookTypeError      a type error of TypeScript, from a check; the hook still runs
    │   ├── HookThrew          the hook threw, or its promise was rejected
    │   │   └── HookUnasked    it needs an answer of its user, who cannot be asked
    │   ├── HookReturnInvalid  what the hook returned has the wrong type
    │   ├── HookLimit          a limit was crossed (time, memory, calls, sizes)
    │   └── HookCrashed        the worker process that ran the hook died
    ├── SourceError            a search failed; becomes `error` on a result
    │   ├── SourceNotConfigured   no key, no provider, no such collection or model
    │   ├── SourceRefused         the key or the request was refused
    │   ├── SourceRateLimited     too many requests, or the plan's quota is used up
    │   ├── SourceTimeout         no answer in time
    │   ├── SourceMalformed       an answer that does not have the documented shape
    │   └── NotPermitted          identity missing or not enough; not the same as "no rows"
    ├── RerankError            a reranker failed; the merged order stays
    ├── DelegateError          a step of an assistant or MCP tool gave no usable answer
    ├── ModelError             the language model gave no answer, or not all of it
    │   ├── ModelNotConfigured
    │   ├── ModelUnreachable
    │   ├── ModelRefused
    │   ├── ModelContextExceeded  the request is longer than the model's context
    │   ├── ModelStalled
    │   ├── ModelTruncated
    │   ├── ModelGarbled
    │   └── ContractBroken     the answer does not have the form that its client demanded
    ├── ServerError            an MCP server cannot be used; the message names the server
    │   ├── ServerNotConfigured   its command or its address does not exist
    │   ├── ServerUnreachable     it cannot be started or reached, or ended early
    │   ├── ServerTimeout         it was not ready, or did not answer, in time
    │   ├── ServerMalformed       its answer is not MCP, or larger than allowed
    │   ├── ServerRefused         it answered with an error
    │   └── ToolFailed            the tool ran and reported a failure
    ├── IngestError            a document cannot be added
    ├── TooManyTurns           the host's limit of turns, running and waiting, is reached
    ├── ChatBusy               another turn of the chat is under way
    ├── AlreadyDecided         calls that wait for the user were decided about, or left behind
    ├── RequestRepeated        another request with the same key has begun a turn
    ├── StorageError           disk full, a store that cannot be opened or is in use
    └── WorkerDied             a child process of the host ended during a call

Errors of libraries are turned into these by one context manager at each edge, with `raise … from`;
above the edge no module depends on the library. Programming errors (TypeError, KeyError, …)
are not in the tree and are not caught.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groundhook.core.concealed import LONG, SHORTEST, without_concealed

LONGEST_NAME = 100  # longer unknown names are not compared with the known ones: it takes too long


@dataclass(frozen=True)
class Place:
    """A position in a file: the path as a user would type it, line and column counted from 1
    (0: not known). `str()` is `path:line:column`."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file] + [str(n) for n in (self.line, self.column) if n]
        return ":".join(parts)


# The logger of what the host waits for, which commands show: they would seem to hang.
WAITS = "groundhook.waits"


class HostError(Exception):
    """Base of every deliberate error: a problem outside the code of the host.

    `message` says what happened, `place` where, `hint` what to do; `str()` has all three. `code` is
    the class's name for programs, the same in events. Values of environment variables are replaced
    by the variables' names."""

    code = "host"
    _concealed_from = SHORTEST

    def __init__(self, message: str, *, place: Place | None = None, hint: str = "") -> None:
        self.message = without_concealed(message, self._concealed_from)
        super().__init__(self.message)
        self.place = place
        self.hint = without_concealed(hint, self._concealed_from)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{hint}"


class UsageError(HostError):
    """The caller passed wrong arguments. Inside a hook it is thrown as well."""

    code = "usage"


class UnknownName(UsageError):
    """A name is not known: `UnknownName("assistant", "dcos", ["docs"])`. The hint has the nearest
    known name.

    The caller chose the name. Values of variables are not replaced in it: the replacement would
    confirm a guess."""

    code = "unknown_name"
    _concealed_from = LONG

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
        self.noun, self.name = noun, name


class NotFound(UnknownName):
    """A tool call names something that does not exist, or that its identity may not see. The
    message is the same in both cases."""

    code = "not_found"

    def __init__(self, message: str, *, hint: str = "") -> None:
        UsageError.__init__(self, message, hint=hint)
        self.name = ""


class NotSupported(UsageError):
    """The request is understood, but this version does not offer it."""

    code = "not_supported"


NO_APP = "no app in"  # begins the message to which the command line adds its option


class ConfigError(HostError):
    """A file of the app or of a package cannot be used; `place` is the line."""

    code = "config"


class ConfigErrors(ConfigError):
    """Several problems of files at once: `errors` has two or more, in the order of the file.
    `place` is that of the first; `str()` has one line for each."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        self.errors = tuple(errors)
        super().__init__(f"{first.message}{more}", place=first.place, hint=first.hint)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class PluginError(HostError):
    """A plug-in cannot be loaded, or does not fit; the message names it."""

    code = "plugin"


class HookError(HostError):
    """A hook failed; `place` is the line in the TypeScript file."""

    code = "hook"


class HookSyntaxError(HookError):
    """The TypeScript does not compile, or an import cannot be resolved."""

    code = "hook_syntax"


class HookTypeError(HookError):
    """The hook has a type error, found by a check; it still runs. `code` is TypeScript's, such as
    TS2339."""

    def __init__(
        self, code: str, message: str, *, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.code = code


class HookThrew(HookError):
    """The hook threw, or its promise was rejected."""

    code = "hook_threw"


class HookUnasked(HookThrew):
    """The hook asked its user where no question can be shown, and did not catch the error. The
    message has the question, and is for readers too."""

    code = "hook_unasked"


class HookReturnInvalid(HookError):
    """The result of the hook has the wrong type; the message has the path of the value."""

    code = "hook_return"


class HookLimit(HookError):
    """The hook exceeded a limit (time, memory, calls, sizes); `limit` is its key under
    `hooks.limits`."""

    code = "hook_limit"

    def __init__(
        self, limit: str, message: str, *, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.limit = limit


class HookCrashed(HookError):
    """The worker process that ran the hook died."""

    code = "hook_crashed"


class SourceError(HostError):
    """A search failed; the searcher makes it `error` of a result. `again`: a retry may help, after
    `after` seconds if the source names a time."""

    code = "source"
    again = False
    after: float | None = None


class SourceNotConfigured(SourceError):
    """The source has no key, provider, collection or model."""

    code = "source_not_configured"


class SourceRefused(SourceError):
    """The source refused the key or the request."""

    code = "source_refused"


class SourceRateLimited(SourceError):
    """The source refuses more requests for now, or the quota is used up."""

    code = "source_rate_limited"


class SourceTimeout(SourceError):
    """The source did not answer in time."""

    code = "source_timeout"


class SourceMalformed(SourceError):
    """The answer of the source does not have the documented shape."""

    code = "source_malformed"


class NotPermitted(SourceError):
    """The identity is missing or not sufficient, which is not the same as no results."""

    code = "not_permitted"


class RerankError(HostError):
    """A reranker failed; the merged order stays."""

    code = "rerank"


class DelegateError(HostError):
    """A step by an assistant or MCP tool gave no usable answer; the built-in does the step."""

    code = "delegate"


class ModelError(HostError):
    """The language model gave no answer, or only a part. `again`: a retry may help, after `after`
    seconds if the endpoint names a time."""

    code = "model"
    again = False
    after: float | None = None


class ModelNotConfigured(ModelError):
    """The connector has no key, address or model."""

    code = "model_not_configured"


class ModelUnreachable(ModelError):
    """The endpoint cannot be reached, or failed before the answer began."""

    code = "model_unreachable"


class ModelRefused(ModelError):
    """The endpoint refused the key or the request."""

    code = "model_refused"


class ModelContextExceeded(ModelError):
    """The request is longer than the context of the model."""

    code = "model_context_exceeded"


class ModelStalled(ModelError):
    """The model sent no token in time."""

    code = "model_stalled"


class ModelTruncated(ModelError):
    """The connection ended before the answer did."""

    code = "model_truncated"


class ContractBroken(ModelError):
    """The answer does not have the form that the client demanded: JSON of a schema, a call."""

    code = "contract_broken"


class ModelGarbled(ModelError):
    """The answer does not have the shape of the API."""

    code = "model_garbled"


class ServerError(HostError):
    """An MCP server cannot be used; the message names the server."""

    code = "server"


class ServerNotConfigured(ServerError):
    """The server's command or address does not exist."""

    code = "server_not_configured"


class ServerUnreachable(ServerError):
    """The server cannot be started or reached, or ended early. `delivered`: the request may have
    reached the server before the connection was lost, so that it must not be repeated."""

    code = "server_unreachable"

    def __init__(
        self, message: str, *, delivered: bool = True, place: Place | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.delivered = delivered


class ServerTimeout(ServerError):
    """The server was not ready, or did not answer, in time."""

    code = "server_timeout"


class ServerMalformed(ServerError):
    """The server's answer is not MCP, or larger than allowed."""

    code = "server_malformed"


class ServerRefused(ServerError):
    """The server answered with an error."""

    code = "server_refused"


class ToolFailed(ServerError):
    """A tool ran and reported a failure."""

    code = "tool_failed"


class IngestError(HostError):
    """A document cannot be added to a collection."""

    code = "ingest"


class TooManyTurns(HostError):
    """The host's limit of turns, running and waiting, is reached."""

    code = "too_many_turns"


class ChatBusy(HostError):
    """Another turn of the chat is under way; `turn_id` is its id."""

    code = "chat_busy"

    def __init__(self, chat_id: str, turn_id: str) -> None:
        super().__init__(
            f"another turn of the chat {chat_id!r} is under way",
            hint="wait for its end, or stop it",
        )
        self.turn_id = turn_id


class AlreadyDecided(HostError):
    """The user has decided about an answer's calls, or the conversation has gone on without a
    decision: each call runs at most once."""

    code = "already_decided"

    def __init__(self) -> None:
        super().__init__(
            "no call of this answer waits any more: it was decided about, or the chat has gone on",
            hint="ask again for what you want done",
        )


class RequestRepeated(HostError):
    """Another request with the same key has begun a turn; `turn_id` is its id."""

    code = "request_repeated"

    def __init__(self, turn_id: str) -> None:
        super().__init__(
            "another request with this key has begun a turn",
            hint="repeat the request: it is answered with that turn",
        )
        self.turn_id = turn_id


class StorageError(HostError):
    """The disk is full, or a store cannot be opened or is in use."""

    code = "storage"


class WorkerDied(HostError):
    """A child process of the host ended during a call."""

    code = "worker_died"


def _nearest(name: str, known: Sequence[str], cutoff: float) -> str:
    folded = {each.casefold(): each for each in reversed(known)}  # the first of equal ones counts
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[near[0]] if near else ""


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return the hint for an unknown name: the full id that ends with it, the nearest known name,
    the id with the nearest last part, or else the first twelve known names."""
    near = next((full for full in known if full.endswith(f".{name}")), "")
    if not near and len(name) <= LONGEST_NAME:
        last_parts = {full.rpartition(".")[2]: full for full in known}
        # Short parts are near many words, so they have to be nearer.
        near = _nearest(name, known, 0.6) or last_parts.get(
            _nearest(name, list(last_parts), 0.75), ""
        )
    if near:
        return f"did you mean {near!r}?"
    if not known:
        return "none are known"
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"known: {shown}"

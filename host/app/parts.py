"""Makes the parts that plug-ins register: checks each against its port, and names the plug-in in
every exception of its code. Built-in parts are used as they are: a bug of the host is not reported
as a plug-in's."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groundhook.core.errors import HostError, IngestError, PluginError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.ports import Delta, ModelCall, SourceResult
from groundhook.core.types.documents import Document, Reader
from groundhook.core.types.tools import Tool

if TYPE_CHECKING:
    from groundhook.core.types.web_providers import WebAccess, WebEngine, WebProvider

log = logging.getLogger("groundhook")

T = TypeVar("T")
Method = Callable[..., Any]


# --------------------------------------------------------------------- methods that name their part


@contextmanager
def _name_plugin_in_errors(part: str, *passed: type[Exception]) -> Iterator[None]:
    """Turn an exception that is a bug of a plug-in into a PluginError that names the part.
    Exceptions of the types `passed` are not bugs, and pass."""
    no_bugs: tuple[type[Exception], ...] = (HostError, StopAsyncIteration, *passed)
    try:
        # A plug-in may use task groups, whose groups would hide a HostError.
        with unwrap_exception_groups():
            yield
    except no_bugs:
        raise
    except Exception as exc:  # third-party code, which may raise anything
        log.exception("a bug in %s", part)
        raise PluginError(
            f"{part} raised {_describe_reason(exc)}", hint="the log has the traceback"
        ) from exc


def _wrap_plain(method: Method, part: str) -> Method:
    def call(*arguments: Any, **options: Any) -> Any:
        with _name_plugin_in_errors(part):
            return method(*arguments, **options)

    return call


def _wrap_awaited(method: Method, part: str, returns: type = object) -> Method:
    async def call(*arguments: Any, **options: Any) -> Any:
        with _name_plugin_in_errors(part):
            answer = await method(*arguments, **options)
        if not isinstance(answer, returns):
            raise PluginError(
                f"{part} returned {_describe_kind(answer)} from `{method.__name__}`, not a"
                f" {returns.__name__}"
            )
        return answer

    return call


def _wrap_following(method: Method, part: str) -> Method:
    """Wrap the method with which a source makes itself again for other declarations."""

    def call(*arguments: Any) -> Any:
        with _name_plugin_in_errors(part):
            one = method(*arguments)
        return _make_stand_in(one, part, SOURCE)

    return call


def _wrap_streamed(method: Method, part: str) -> Method:
    @asynccontextmanager
    async def stream(call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with AsyncExitStack() as stack:
            # Only around entering: what the body of the block raises is not the plug-in's error.
            with _name_plugin_in_errors(part):
                deltas = aiter(await stack.enter_async_context(method(call)))
            yield _Deltas(deltas, part)

    return stream


@dataclass(frozen=True)
class _Deltas:
    """The deltas of a plug-in's model."""

    deltas: AsyncIterator[Delta]
    part: str

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        with _name_plugin_in_errors(self.part):
            return await anext(self.deltas)


def _wrap_tools(method: Method, part: str) -> Method:
    def call() -> Sequence[Tool]:
        with _name_plugin_in_errors(part):
            return [named_tool(f"the tool {tool.name!r} of {part}", tool) for tool in method()]

    return call


# -------------------------------------------------------------------------------------------- ports


@dataclass(frozen=True, kw_only=True)
class Port:
    """The shape of a part: the names that it must have, and how its methods are wrapped."""

    needs: tuple[str, ...]
    methods: Mapping[str, Callable[[Method, str], Method]]


SOURCE = Port(
    needs=("search",),
    methods={
        "search": partial(_wrap_awaited, returns=SourceResult),
        "records": partial(_wrap_awaited, returns=list),
        "fetch_document": partial(_wrap_awaited, returns=SourceResult),
        "fetch_page": _wrap_awaited,
        "can_handle": _wrap_plain,
        "with_declarations": _wrap_following,
    },
)
RERANKER = Port(needs=("rerank",), methods={"rerank": _wrap_awaited})
CONNECTOR = Port(
    needs=("stream",), methods={"stream": _wrap_streamed, "learn_window": _wrap_awaited}
)
EMBEDDER = Port(
    needs=("provider", "model", "dimensions", "embed_query", "embed_documents", "similarity"),
    methods={
        "similarity": _wrap_plain,
        "embed_query": _wrap_awaited,
        "embed_documents": _wrap_awaited,
        "embed_queries": _wrap_awaited,
        "count_tokens": _wrap_plain,
        "fallback": _wrap_awaited,
    },
)
TOOLKIT = Port(
    needs=("tools", "sync"),
    methods={"tools": _wrap_tools, "sync": _wrap_plain, "owners": _wrap_plain},
)
_ENGINE = Port(needs=("search",), methods={"search": partial(_wrap_awaited, returns=list)})


# ------------------------------------------------------------------------------------- making parts


def make_part(part: str, port: Port, make: Callable[[], T]) -> T:
    """Return the part that `make` makes. `part` names it and its plug-in in errors ("": it is
    built in). Raises PluginError if `make` fails, or if what it returns lacks a method."""
    return _make_stand_in(_check_part(part, make), part, port) if part else make()


def _check_part(part: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except HostError:
        raise
    except Exception as exc:  # third-party code, which may raise anything
        raise part_failure(part, exc) from exc


def part_failure(part: str, exc: Exception) -> PluginError:
    return PluginError(f"{part} cannot be made: {_describe_reason(exc)}")


def make_provider(part: str, make: Callable[[], WebProvider]) -> WebProvider:
    """Return a web search provider that `make` makes, as `make_part` does."""
    if not part:
        return make()
    # Imported here because only turns that search the web need it.
    from groundhook.core.types.web_providers import WebProvider

    one = _check_part(part, make)
    if not isinstance(one, WebProvider):
        raise PluginError(f"{part} is not a WebProvider, but {_describe_kind(one)}")

    def make_engine(access: WebAccess) -> WebEngine:
        return make_part(part, _ENGINE, partial(one.make, access))

    return replace(one, make=make_engine)


def named_reader(part: str, reader: Reader) -> Reader:
    """Return the reader of files, with its plug-in in its errors."""
    if not part:
        return reader

    def read(data: bytes, name: str) -> Document:
        failure = f"{name!r} was not added: {part}"
        try:
            document = reader(data, name)
        except HostError:
            raise
        except Exception as exc:  # parsers raise anything on untrusted input
            # Not as a bug: the file is the likely cause, and the other files are still added.
            log.info("%s failed", part, exc_info=exc)
            raise IngestError(f"{failure} raised {_describe_reason(exc)}") from exc
        if not isinstance(document, Document):
            raise IngestError(f"{failure} returned {_describe_kind(document)}, not a Document")
        return document

    return read


def named_tool(part: str, tool: Tool) -> Tool:
    """Return the tool, with its plug-in in its errors. ValueError and TimeoutError are answers for
    the model."""
    if not part:
        return tool
    naming = partial(_name_plugin_in_errors, part, ValueError, TimeoutError)
    return replace(
        tool,
        run=_wrap_run(tool.run, naming),
        items=tool.items and _wrap_plain(tool.items, part),
        text=tool.text and _wrap_plain(tool.text, part),
    )


def _wrap_run(run: Method, naming: Callable[[], AbstractContextManager[None]]) -> Method:
    """Wrap the function of a tool, which keeps its signature and is async if it was."""

    async def awaited(answer: Awaitable[Any]) -> Any:
        with naming():
            return await answer

    # `wraps`: the host reads from the signature whether the function takes a scope.
    @wraps(run)
    async def in_loop(*given: Any) -> Any:
        return await awaited(run(*given))

    @wraps(run)
    def in_thread(*given: Any) -> Any:
        with naming():
            answer = run(*given)
        return awaited(answer) if isawaitable(answer) else answer

    return in_loop if iscoroutinefunction(run) else in_thread


def _make_stand_in(one: T, part: str, port: Port) -> T:
    """Return a stand-in for a part, of a class with the same names, since `isinstance` recognises a
    port by the names that a class has. Errors of the part name it. Raises PluginError for a part
    that lacks one of `port.needs`."""
    for name in port.needs:
        if not hasattr(one, name):
            raise PluginError(f"{part} has no `{name}`: it is {_describe_kind(one)}")
    # Properties, so that attributes which a part changes later are seen.
    members: dict[str, Any] = {
        name: _forward(one, name) for name in dir(one) if not name.startswith("__")
    }
    for name, wrap in port.methods.items():
        if name in members:
            members[name] = staticmethod(wrap(getattr(one, name), part))
    return cast("T", type(one.__class__.__name__, (), members)())


def _forward(one: object, name: str) -> property:
    return property(lambda _: getattr(one, name))


def _describe_reason(exc: Exception) -> str:
    return f"{exc.__class__.__name__}: {exc}"


def _describe_kind(value: object) -> str:
    return "None" if value is None else f"a value of {value.__class__.__name__}"

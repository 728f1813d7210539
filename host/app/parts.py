"""Makes the parts that plug-ins register: checks each against its port, and names the plug-in in
every exception of its code. Built-in parts are used as they are: a bug of
the host is not reported as a plug-in's."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groundhook.host.core.errors import HostError, IngestError, PluginError
from groundhook.host.core.exception_groups import unwrapped
from groundhook.host.core.ports import Delta, Found, ModelCall
from groundhook.host.core.types.documents import Document, Reader

if TYPE_CHECKING:
    from groundhook.host.core.types.web_providers import WebAccess, WebEngine, WebProvider

log = logging.getLogger("groundhook")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Port:
    """The shape of a part: the names that it must have, the methods that are called (`plain`),
    awaited, and the type of what a method returns, where it is checked."""

    needs: tuple[str, ...]
    plain: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    returns: Mapping[str, type] = field(default_factory=dict)


SOURCE = Port(
    needs=("search",),
    plain=("with_declarations",),
    awaited=("search", "records", "fetch_document"),
    returns={"search": Found, "fetch_document": Found, "records": list},
)
RERANKER = Port(needs=("rerank",), awaited=("rerank",))
CONNECTOR = Port(needs=("stream",), awaited=("learn_window",))
EMBEDDER = Port(
    needs=("provider", "model", "dimensions", "embed_query", "embed_documents", "similarity"),
    plain=("similarity",),
    awaited=("embed_query", "embed_documents", "embed_queries"),
)
TOOLKIT = Port(needs=("tools", "sync"), plain=("tools", "sync"))
_ENGINE = Port(needs=("search",), awaited=("search",), returns={"search": list})


def made(part: str, port: Port, make: Callable[[], T]) -> T:
    """Return the part that `make` makes. `part` names it and its plug-in in errors; "" for a
    built-in one. Raises PluginError if `make` fails, or if what it returns lacks a method."""
    return _named(_made(part, make), part, port) if part else make()


def _made(part: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except HostError:
        raise
    except Exception as exc:  # third-party code, which may raise anything
        raise cannot_be_made(part, exc) from exc


def cannot_be_made(part: str, exc: Exception) -> PluginError:
    return PluginError(f"{part} cannot be made: {_reason(exc)}")


def made_provider(part: str, make: Callable[[], WebProvider]) -> WebProvider:
    """Return a web search provider that `make` makes, as `made` does."""
    if not part:
        return make()
    # Imported here because a turn that searches no web does without.
    from groundhook.host.core.types.web_providers import WebProvider

    one = _made(part, make)
    if not isinstance(one, WebProvider):
        raise PluginError(f"{part} is not a WebProvider, but {_kind(one)}")

    def make_engine(access: WebAccess) -> WebEngine:
        return made(part, _ENGINE, partial(one.make, access))

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
            log.info("%s failed", part, exc_info=exc)
            raise IngestError(f"{failure} raised {_reason(exc)}") from exc
        if not isinstance(document, Document):
            raise IngestError(f"{failure} returned {_kind(document)}, not a Document")
        return document

    return read


def following(handler: T, part: str) -> T:
    """Return a source that a plug-in's source has made of itself, with the plug-in in its
    errors."""
    return _named(handler, part, SOURCE) if part else handler


def _named(one: T, part: str, port: Port) -> T:
    """Return a stand-in for a part: it has the same names, so it follows the same ports, and what
    the part raises names it. Raises PluginError for a part that lacks one of `port.needs`."""
    for name in port.needs:
        if not hasattr(one, name):
            raise PluginError(f"{part} has no `{name}`: it is {_kind(one)}")
    members: dict[str, Any] = {
        name: _forwarded(one, name) for name in dir(one) if not name.startswith("__")
    }
    for name in members.keys() & set(port.plain):
        members[name] = _plain(getattr(one, name), part)
    for name in members.keys() & set(port.awaited):
        members[name] = _awaited(getattr(one, name), part, name, port.returns.get(name))
    if port is CONNECTOR:  # the only port with a method that streams
        members["stream"] = _streamed(cast("Any", one).stream, part)
    return cast("T", type(one.__class__.__name__, (), members)())


def _forwarded(one: object, name: str) -> property:
    return property(lambda _: getattr(one, name))


def _plain(method: Callable[..., Any], part: str) -> Callable[..., Any]:
    def call(_: object, *arguments: Any, **options: Any) -> Any:
        with _naming(part):
            return method(*arguments, **options)

    return call


def _awaited(
    method: Callable[..., Any], part: str, name: str, returns: type | None
) -> Callable[..., Any]:
    async def call(_: object, *arguments: Any, **options: Any) -> Any:
        with _naming(part):
            answer = await method(*arguments, **options)
        if returns is not None and not isinstance(answer, returns):
            raise PluginError(
                f"{part} returned {_kind(answer)} from `{name}`, not a {returns.__name__}"
            )
        return answer

    return call


def _streamed(method: Callable[..., Any], part: str) -> Callable[..., Any]:
    @asynccontextmanager
    async def stream(_: object, call: ModelCall, /) -> AsyncIterator[AsyncIterator[Delta]]:
        async with AsyncExitStack() as stack:
            with _naming(part):  # not around the block: what its body raises is not the plug-in's
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
        with _naming(self.part):
            return await anext(self.deltas)


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Turn an exception that is a bug of a plug-in into a PluginError that names the part."""
    try:
        with unwrapped():
            yield
    except (HostError, StopAsyncIteration):
        raise
    except Exception as exc:  # third-party code, which may raise anything
        log.exception("a bug in %s", part)
        raise PluginError(
            f"{part} raised {_reason(exc)}", hint="the log has the traceback"
        ) from exc


def _reason(exc: Exception) -> str:
    return f"{exc.__class__.__name__}: {exc}"


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of {value.__class__.__name__}"

"""The parts that plug-ins register, and the search for installed plug-ins.

A plug-in is a `Plugin` value, named by an entry point of the group `groundhook.plugins` or given to
`open_host`. The built-in parts are registered by a plug-in as well (`host.app.builtins`). Each
plug-in fills a `Plugins` of its own; they are joined here, so a name that is taken twice is
reported with both owners.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from groundhook.core.app_settings import AppSettings, DatabaseSettings
from groundhook.core.errors import HostError, PluginError, UnknownName
from groundhook.core.ports import (
    ClientOf,
    Clock,
    Connector,
    Embedder,
    Handler,
    Reranker,
)
from groundhook.core.tool_ports import Toolkit
from groundhook.core.types.closing import OnClose
from groundhook.core.types.collection_spec import (
    CollectionSpec,
    EmbeddingSpec,
)
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.documents import Reader
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.search import SEARCH_TYPES, SearchType
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import Tool

if TYPE_CHECKING:  # few apps use all of these
    from groundhook.core.types.sync import SyncStatus
    from groundhook.core.types.web_providers import WebProvider

PORT_VERSION = 1  # of the plug-in interface; raised when older plug-ins no longer fit
GROUP = "groundhook.plugins"  # of entry points

T = TypeVar("T")


@dataclass(frozen=True)
class PluginOwner:
    """A plug-in, by its name in messages. `passed`: a program passes it to `open_host`; otherwise
    it comes from an installed distribution."""

    name: str
    passed: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def removal(self) -> str:
        """The instruction for removing it."""
        return "do not pass it to `open_host`" if self.passed else "uninstall it"


HOST = PluginOwner("Groundhook itself")  # of the built-in parts


@dataclass(frozen=True, kw_only=True)
class PluginContext:
    """The app for which a plug-in makes its parts. `environment` has the variables of the app;
    `root` is its folder and `state` its folder for files; `collections` and `models` are the
    declared ones, by full id, and `databases` those of the models by their `connection`.
    `client_of` returns a guarded web client, `embedder` the embedding model of a specification,
    `synced` the state of a toolkit's syncs, by full id. An async function passed to `closing` is
    awaited when the host closes."""

    environment: Mapping[str, str]
    child_environment: Mapping[str, str]  # of processes that read untrusted files
    settings: AppSettings
    root: Path
    state: Path
    databases: Mapping[str, DatabaseSettings]
    collections: Mapping[str, CollectionSpec]
    models: Mapping[str, ModelSpec]
    plugins: Plugins
    client_of: ClientOf
    embedder: Callable[[EmbeddingSpec], Embedder]
    now: Clock
    synced: Callable[[str], Awaitable[SyncStatus]]
    closing: OnClose


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A search source: the type of the searches that it serves, and how it is made. Sources of one
    type are searched together. A `module` that takes long to import is imported in a thread before
    the first search; imported by `make`, it would block the event loop."""

    type: SearchType
    make: Callable[[PluginContext], Handler]
    module: str = ""

    def __post_init__(self) -> None:
        if self.type not in SEARCH_TYPES:
            raise UnknownName("search type", self.type, SEARCH_TYPES)


class Entries(Generic[T]):
    """The registered parts of one kind, by name."""

    def __init__(self, noun: str, misfit: Callable[[str, object], str] | None = None) -> None:
        """`misfit` returns the problem with a name or an item, or ""."""
        self.noun = noun
        self._misfit = misfit or _describe_wrong_maker
        self._items: dict[str, T] = {}
        self._replacing: set[str] = set()
        self._owners: dict[str, PluginOwner] = {}
        self._replaced: dict[str, T] = {}

    def add(self, name: str, item: T) -> None:
        """Register under a new name. Raises PluginError if this plug-in has used it already, or
        if the name or the item is of the wrong kind."""
        if not isinstance(name, str) or not name or name != name.strip():
            raise PluginError(f"{name!r} cannot be the name of a {self.noun}")
        if problem := self._misfit(name, item):
            raise PluginError(f"the {self.noun} {name!r} {problem}")
        if name in self._items:
            raise PluginError(f"the {self.noun} {name!r} is registered twice")
        self._items[name] = item

    def replace(self, name: str, item: T) -> None:
        """Register in place of the built-in of that name."""
        self.add(name, item)
        self._replacing.add(name)

    def owner(self, name: str) -> str:
        """Return the plug-in that registered the name, as messages name it."""
        return str(self._owners.get(name, ""))

    def part(self, name: str) -> str:
        """Return the words for the part of a plug-in, as messages name it; "" for a built-in."""
        owner = self._owners.get(name, HOST)
        return "" if owner == HOST else f"the {self.noun} {name!r} of {owner}"

    def take(self, other: Entries[T], owner: PluginOwner) -> None:
        """Add what one plug-in has registered. Raises PluginError if a name is taken, or if a
        replaced name does not exist."""
        for name, item in other._items.items():
            before = self._owners.get(name)
            if name in other._replacing:
                if before is None:
                    known = ", ".join(self._items)
                    raise PluginError(
                        f"{owner} replaces the {self.noun} {name!r}, which does not exist",
                        hint=f"known: {known}",
                    )
                taken = before if before != HOST else None
            else:
                taken = before
            if taken is not None:
                raise PluginError(
                    f"{owner} and {taken} both register the {self.noun} {name!r}",
                    hint=_advise_on_names(owner, taken),
                )
            if before is not None:
                self._replaced[name] = self._items[name]
            self._items[name] = item
            self._owners[name] = owner

    def built_in(self, name: str) -> T:
        """Return the built-in part of a name, also if a plug-in has replaced it."""
        return self._replaced.get(name, self._items[name])

    def items(self) -> Iterator[tuple[str, T]]:
        """Return the names and parts in the order of registration."""
        return iter(self._items.items())

    def names(self) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> T:
        return self._items[name]


def _describe_wrong_maker(_: str, item: object) -> str:
    return "" if callable(item) else f"is not a function that makes it, but {_describe_kind(item)}"


def _describe_wrong_source(_: str, item: object) -> str:
    return "" if isinstance(item, Source) else f"is not a `Source(…)`, but {_describe_kind(item)}"


def _describe_wrong_tool(_: str, item: object) -> str:
    return "" if isinstance(item, Tool) else f"is not a `Tool(…)`, but {_describe_kind(item)}"


def _describe_wrong_reader(name: str, item: object) -> str:
    if name == "." or not name.startswith(".") or name != name.lower():
        return "needs the ending of a file as its name, with its dot and in lower case, like '.log'"
    return "" if callable(item) else f"is not a function, but {_describe_kind(item)}"


def _make_entries(noun: str, misfit: Callable[[str, object], str] | None = None) -> Any:
    return field(default_factory=lambda: Entries(noun, misfit))


@dataclass(frozen=True, kw_only=True)
class Plugins:
    """The registries of all kinds of parts. Each entry is a function that makes the part when it is
    first needed, except readers and tools, which are registered themselves.

    A `source` may have any name. The names of the others are those that settings use:
    `search.web.provider` for `web_providers`, `uses.rerank` for `rerankers`, `type` of a
    connector's file for `connectors`, `type` of a toolkit's file for `toolkits`,
    `embedding.provider` of a collection for `embedders`. `readers` are named by the ending of a
    file, with its dot."""

    sources: Entries[Source] = _make_entries("search source", _describe_wrong_source)
    web_providers: Entries[Callable[[PluginContext], WebProvider]] = _make_entries(
        "web search provider"
    )
    rerankers: Entries[Callable[[PluginContext], Reranker]] = _make_entries("reranker")
    connectors: Entries[Callable[[ConnectorSpec, PluginContext], Connector]] = _make_entries(
        "connector type"
    )
    embedders: Entries[Callable[[EmbeddingSpec, PluginContext], Embedder]] = _make_entries(
        "embedding provider"
    )
    readers: Entries[Reader] = _make_entries("document reader", _describe_wrong_reader)
    tools: Entries[Tool] = _make_entries("tool", _describe_wrong_tool)
    toolkits: Entries[Callable[[ToolkitSpec, PluginContext], Toolkit]] = _make_entries(
        "toolkit type"
    )


@dataclass(frozen=True)
class Plugin:
    """A plug-in: a function that registers its parts, and the version of the interface that it was
    written for (the `PORT_VERSION` of that time). `name` is for messages about a plug-in that a
    program passes to `open_host`."""

    register: Callable[[Plugins], None]
    requires: int
    name: str = ""


def join_plugins(every: Plugins, plugins: Iterable[tuple[PluginOwner, object]]) -> None:
    """Add to `every` the parts that plug-ins register, given with their owners. Raises
    PluginError."""
    for owner, plugin in plugins:
        # Registries of its own first, so that each name is known with its owner.
        own = Plugins()
        _register(owner, plugin, own)
        for kind in fields(Plugins):
            getattr(every, kind.name).take(getattr(own, kind.name), owner)


def installed_plugins() -> Iterator[tuple[PluginOwner, object]]:
    """Yield the plug-ins of installed distributions, with their owners. Raises PluginError if one
    fails to load, or if two have the same name."""
    # Sorted, since the order of installed distributions differs from machine to machine.
    points = sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name)
    owners: dict[str, PluginOwner] = {}
    for point in points:
        owner = _find_owner(point)
        if point.name in owners:
            raise PluginError(
                f"two plug-ins have the name {point.name!r}: {owners[point.name]} and {owner}",
                hint="uninstall one of them",
            )
        owners[point.name] = owner
        try:
            plugin = point.load()
        # The import of a third-party package may raise anything; a script may even exit.
        except (Exception, SystemExit) as exc:
            raise PluginError(
                f"{owner} cannot be loaded from {point.value!r}: {exc.__class__.__name__}: {exc}",
                hint="update or uninstall it",
            ) from exc
        yield owner, plugin


def passed_plugins(plugins: Iterable[object]) -> Iterator[tuple[PluginOwner, object]]:
    """Yield the plug-ins that a program passes to `open_host`, with their owners."""
    for index, plugin in enumerate(plugins):
        name = plugin.name if isinstance(plugin, Plugin) else ""
        yield PluginOwner(f"the plug-in {name or f'plugins[{index}]'!r}", passed=True), plugin


def _find_owner(point: metadata.EntryPoint) -> PluginOwner:
    whose = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return PluginOwner(f"the plug-in {point.name!r}{whose}")


def _advise_on_names(one: PluginOwner, other: PluginOwner) -> str:
    """Return the advice for two plug-ins that register the same name."""
    if HOST in (one, other):
        return "register it with `replace`"
    if one.passed == other.passed:
        return "pass one of them to `open_host`" if one.passed else "uninstall one of them"
    passed, installed = (one, other) if one.passed else (other, one)
    return f"do not pass {passed} to `open_host`, or uninstall {installed}"


def _register(owner: PluginOwner, plugin: object, own: Plugins) -> None:
    if not isinstance(plugin, Plugin):
        raise PluginError(
            f"{owner} is not a `groundhook.plugins.Plugin`, but {_describe_kind(plugin)}: it may be"
            " written for an older plug-in interface",
            hint=f"make it Plugin(register, requires={PORT_VERSION}), or update it",
        )
    if not isinstance(plugin.requires, int):
        raise PluginError(
            f"{owner} requires {plugin.requires!r}, not a version of the plug-in interface",
            hint=f"make it Plugin(register, requires={PORT_VERSION})",
        )
    if plugin.requires != PORT_VERSION:
        older = plugin.requires < PORT_VERSION
        raise PluginError(
            f"{owner} is written for version {plugin.requires} of the plug-in interface;"
            f" this Groundhook has version {PORT_VERSION}",
            hint=f"update {'the plug-in' if older else 'Groundhook'}",
        )
    try:
        plugin.register(own)
    except HostError as exc:
        raise PluginError(f"{owner}: {exc.message}", hint=exc.hint) from exc
    except Exception as exc:  # third-party code, which may raise anything
        raise PluginError(
            f"{owner} cannot be registered: {exc.__class__.__name__}: {exc}",
            hint=f"correct it, or {owner.removal}",
        ) from exc


def _describe_kind(plugin: object) -> str:
    return "a function" if callable(plugin) else f"a value of {plugin.__class__.__name__}"

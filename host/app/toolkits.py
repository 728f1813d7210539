"""The toolkits of an open app, each made when one of its tools is first listed, and the owners of
the documents in their collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from groundhook.core.errors import ConfigError, HostError, Place, UnknownName
from groundhook.core.tool_ports import HasOwners, Toolkit
from groundhook.core.types.collection_queries import Owner
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.host.app.parts import TOOLKIT, make_part
from groundhook.host.app.plugins import PluginContext
from groundhook.host.config.packages import App


@dataclass(frozen=True)
class _Made:
    """A toolkit that was made for a file, and the owners of its collections."""

    spec: ToolkitSpec
    toolkit: Toolkit
    owners: Mapping[str, Owner]


class Toolkits:
    """Toolkits by full id. After a reload, those whose files have changed are made again; all of
    them if a collection has changed, since they may depend on it."""

    def __init__(
        self,
        app: App,
        context: PluginContext,
        made: dict[str, _Made] | None = None,
    ) -> None:
        self._app, self._context = app, context
        self._made = {} if made is None else made

    def with_app(self, app: App) -> Toolkits:
        """Return the toolkits of another reading of the app's files."""
        context = replace(self._context, collections=app.collections, models=app.models)
        same = _readable(app.collections) == _readable(self._app.collections)
        return Toolkits(app, context, dict(self._made) if same else {})

    def __call__(self, id: str) -> Toolkit:
        """Return a toolkit by its full id. Raises UnknownName; ConfigError when its file is broken
        or needs a variable that is not set, and for a collection that does not keep the owners of
        its documents apart; PluginError when its type cannot be made."""
        spec = self._app.toolkits.named(id)
        made = self._made.get(id)
        if made is None or made.spec != spec:
            toolkit = self._make_toolkit(spec)
            made = self._made[id] = _Made(spec, toolkit, _get_owners(toolkit))
        _refuse_unseparated(self._app, spec, made.owners)  # files of collections change as well
        return made.toolkit

    def _make_toolkit(self, spec: ToolkitSpec) -> Toolkit:
        types = self._context.plugins.toolkits
        part = types.part(spec.common.type)
        make = partial(types[spec.common.type], spec, self._context)
        return make_part(part and f"the toolkit {spec.id!r}, {part},", TOOLKIT, make)


def owners_of(app: App, toolkits: Callable[[str], Toolkit], collection: str) -> Sequence[Owner]:
    """Return the owners of the documents in a collection, given its full id, as the toolkits of the
    app name them; `tenant` if none does."""
    found: dict[Owner, None] = {}
    for id in app.toolkits:
        with suppress(HostError):  # a toolkit that cannot be made is reported where it is used
            owners = _get_owners(toolkits(id))
            for each, owner in _list_owned(app, app.toolkits[id], owners):
                if each.id == collection:
                    found[owner] = None
    return tuple(found) or ("tenant",)


def _readable(collections: Mapping[str, CollectionSpec]) -> dict[str, CollectionSpec]:
    """Return the declarations that are not broken."""
    found = {}
    for id in collections:
        with suppress(HostError):
            found[id] = collections[id]
    return found


def _refuse_unseparated(app: App, spec: ToolkitSpec, owners: Mapping[str, Owner]) -> None:
    """Raise ConfigError if users would see documents of other owners."""
    for collection, owner in _list_owned(app, spec, owners):
        if owner != "app" and not collection.tenant_field:
            raise ConfigError(
                f"'tenant_field' is missing: the toolkit {spec.id!r} keeps the documents of each"
                f" {owner} in {collection.id!r}, which does not separate them",
                place=Place(app.collections.files.get(collection.id, collection.id)),
                hint=f'add "tenant_field": "owner", or set "owner": "app" in {spec.shown}',
            )


def _get_owners(toolkit: Toolkit) -> Mapping[str, Owner]:
    return toolkit.owners() if isinstance(toolkit, HasOwners) else {}


def _list_owned(
    app: App, spec: ToolkitSpec, owners: Mapping[str, Owner]
) -> Iterator[tuple[CollectionSpec, Owner]]:
    for name, owner in owners.items():
        with suppress(UnknownName):  # a call and `groundhook check` report it
            yield app.resolve_collection(spec.assistant, name), owner

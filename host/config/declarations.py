"""Files that each declare one thing: collections, models, connectors, APIs, MCP servers and
toolkits, of the app and of each assistant. A file is read when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from groundhook.core.errors import ConfigError, Place, UnknownName, suggestion
from groundhook.core.settings import SearchSettings
from groundhook.core.settings_files import PackageFile
from groundhook.core.types.api_spec import ApiSpec
from groundhook.core.types.base import Value
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.system_models import SYSTEM_MODELS
from groundhook.core.types.toolkit_spec import ToolkitSettings, ToolkitSpec
from groundhook.host.config import tree
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.documents import read_document
from groundhook.host.config.environment import Environment
from groundhook.host.config.prompts import Prompts, read_prompts
from groundhook.host.config.validate import read_value

_Spec = TypeVar("_Spec", bound=Value)

# Files of which an unknown key is a warning. In those of collections, models and servers it is an
# error: there a key may decide who sees what.
LENIENT: tuple[type[Value], ...] = (PackageFile, SearchSettings, ConnectorSpec)
_TOOLKIT_KEYS = frozenset(ToolkitSettings.model_fields)

_OFFLINE = ConnectorSpec(
    id="extractive", label="Sentences of the sources, no language model", type="extractive"
)


def collections(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment
) -> Catalogue[CollectionSpec]:
    """Return the collections of an app, with those of its assistants."""
    files = {each.id: each for each in _list_all_files("kb", found, root)}
    loaders = {id: partial(_read_collection, each, root, environment) for id, each in files.items()}
    shown = {id: each.shown for id, each in files.items()}
    return Catalogue("collection", loaders, files=shown)


def models(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment
) -> Catalogue[ModelSpec]:
    """Return the models."""
    loaders = _make_loaders("models", ModelSpec, found, root, environment)
    shown = {each.id: each.shown for each in _list_all_files("models", found, root)}
    return Catalogue("model", loaders, SYSTEM_MODELS, files=shown)


def servers(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment
) -> Catalogue[ServerSpec]:
    """Return the MCP servers."""
    return Catalogue("MCP server", _make_loaders("mcps", ServerSpec, found, root, environment))


def apis(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment
) -> Catalogue[ApiSpec]:
    """Return the APIs."""
    return Catalogue("API", _make_loaders("apis", ApiSpec, found, root, environment))


def connectors(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment, types: frozenset[str]
) -> Catalogue[ConnectorSpec]:
    """Return the connectors, with the one that every app has. `types` are those that one may have
    (none: any)."""
    loaders: dict[str, Callable[[], ConnectorSpec]] = {_OFFLINE.id: lambda: _OFFLINE}
    files = list(_list_all_files("connectors", found, root))
    for each in files:
        loaders[each.id] = partial(_read_connector, each, environment, types)
    return Catalogue("connector", loaders, files={each.id: each.shown for each in files})


def toolkits(
    root: Path, found: Sequence[tree.FoundPath], environment: Environment, types: frozenset[str]
) -> Catalogue[ToolkitSpec]:
    """Return the toolkits. `types` are those that one may have (none: any)."""
    loaders = {
        each.id: partial(_read_toolkit, each, owner, root, environment, types)
        for owner in (None, *found)
        for each in _list_files("toolkits", owner, root)
    }
    return Catalogue("toolkit", loaders)


def _list_files(kind: str, owner: tree.FoundPath | None, root: Path) -> Iterable[tree.FoundPath]:
    """Return the files of a kind of one assistant, or of the app (None)."""
    if owner is None:
        return tree.declared(root, root, kind=kind)
    return tree.declared(owner.path, root, kind=kind, prefix=f"agents.{owner.id}.")


def _list_all_files(
    kind: str, packages: Iterable[tree.FoundPath], root: Path
) -> Iterable[tree.FoundPath]:
    for owner in (None, *packages):
        yield from _list_files(kind, owner, root)


def _make_loaders(
    kind: str,
    model: type[_Spec],
    packages: Iterable[tree.FoundPath],
    root: Path,
    environment: Environment,
) -> dict[str, Callable[[], _Spec]]:
    return {
        each.id: partial(_read_spec, model, each, environment)
        for each in _list_all_files(kind, packages, root)
    }


def _read_spec(model: type[_Spec], found: tree.FoundPath, environment: Environment) -> _Spec:
    document = read_document(found.path, found.shown)
    return read_value(model, document, environment, lenient=model in LENIENT, id=found.id)


def _read_connector(
    found: tree.FoundPath, environment: Environment, types: frozenset[str]
) -> ConnectorSpec:
    spec = _read_spec(ConnectorSpec, found, environment)
    if types and spec.type not in types:
        place = read_document(found.path, found.shown).place(("type",))
        hint = suggestion(spec.type, sorted(types))
        raise ConfigError(f"'type': no connector type {spec.type!r}", place=place, hint=hint)
    return spec


def _read_toolkit(
    found: tree.FoundPath,
    owner: tree.FoundPath | None,
    root: Path,
    environment: Environment,
    types: frozenset[str],
) -> ToolkitSpec:
    """Return a toolkit with the keys that every one has. Those of its type are read when it is
    made."""
    document = read_document(found.path, found.shown)
    known = {key: value for key, value in document.data.items() if key in _TOOLKIT_KEYS}
    common = read_value(ToolkitSettings, replace(document, data=known), environment)
    if types and common.type not in types:
        hint = suggestion(common.type, sorted(types))
        place = document.place(("type",))
        raise ConfigError(f"'type': no toolkit type {common.type!r}", place=place, hint=hint)
    folder = owner.path if owner else root
    presets = {each.id: each for each in tree.presets(folder, root)}
    written = [_read_text(each.path) for each in presets.values()]

    def prompts(name: str) -> Prompts:
        if name not in presets:
            raise UnknownName("prompt preset", name, presets, place=Place(found.shown))
        return read_prompts(presets[name].path, presets[name].shown, environment, folder)

    return ToolkitSpec(
        id=found.id,
        assistant=owner.id if owner else "",
        folder=folder,
        shown=found.shown,
        common=common,
        read=lambda model: read_value(model, document, environment),
        prompts=prompts,
        text="\n".join([document.text, *written]),
    )


def _read_text(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read, which its reader reports as an error."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _read_collection(found: tree.FoundPath, root: Path, environment: Environment) -> CollectionSpec:
    """Return a collection. The path of a spaCy pipeline is relative to the collection's file, or
    else to the app's folder."""
    spec = _read_spec(CollectionSpec, found, environment)
    done, _, name = spec.entities.extractor.partition(":")
    folders = (
        [folder / name for folder in (found.path.parent, root)] if done == "spacy" and name else []
    )
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        return spec
    return spec.model_copy(
        update={
            "entities": spec.entities.model_copy(update={"extractor": f"{done}:{folder.resolve()}"})
        }
    )

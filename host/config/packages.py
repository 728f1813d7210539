"""The app: the assistants, collections, models, connectors, MCP servers, APIs and toolkits that its
folder declares.

Files are read when they are first needed, each once: a broken package does not affect the others
and raises its errors where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from groundhook.core.app_settings import AppSettings, DatabaseSettings
from groundhook.core.errors import (
    NO_APP,
    ConfigError,
    Place,
    UnknownName,
    UsageError,
    suggestion,
)
from groundhook.core.hook_engine import HookScript
from groundhook.core.problems import raise_all
from groundhook.core.settings import (
    SearchSettings,
)
from groundhook.core.types.api_spec import ApiSpec
from groundhook.core.types.base import Value
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.model_spec import ModelSpec
from groundhook.core.types.server_spec import ServerSpec
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.turn import CreateReturn, TurnOptions
from groundhook.host.config import declarations, tree
from groundhook.host.config.agent_file import AGENT_FILE, read_agent_file
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.documents import read_document
from groundhook.host.config.environment import Environment, need, without_unset
from groundhook.host.config.hook_files import SCRIPTS, hook_script, script_file
from groundhook.host.config.layers import Layer, file_layer, hook_layer, request_layer
from groundhook.host.config.package import Package, check_package, load_package
from groundhook.host.config.prompts import Prompts, read_prompts
from groundhook.host.config.resolve import Explained, Resolved, explain, explain_app, resolve
from groundhook.host.config.trial import Trial
from groundhook.host.config.validate import ValidDocument, check_document

T = TypeVar("T")
_Spec = TypeVar("_Spec", bound=Value)

SEARCH_FILES = ("search.yao", "search.yml", "search.yaml")  # in agent/
PROMPTS_FILE = "agent/prompts.yml"
_ID = re.compile(r"[\w-]{1,64}(\.[\w-]{1,64}){0,15}")


@dataclass(frozen=True, kw_only=True)
class App:
    """A folder with an app in it. `servers` are MCP servers. `connector_types` and `toolkit_types`
    are those that a connector and a toolkit may have (none: any)."""

    root: Path
    environment: Environment = field(repr=False)
    packages: Catalogue[Package]
    collections: Catalogue[CollectionSpec]
    models: Catalogue[ModelSpec]
    connectors: Catalogue[ConnectorSpec]
    servers: Catalogue[ServerSpec]
    apis: Catalogue[ApiSpec]
    toolkits: Catalogue[ToolkitSpec]
    connector_types: frozenset[str] = frozenset()
    toolkit_types: frozenset[str] = frozenset()

    @cached_property
    def agent_file(self) -> ValidDocument | None:
        """Return `agent/agent.yml`, validated; None without the file. Raises ConfigError when it
        cannot be read."""
        return read_agent_file(self.root, self.environment)

    @cached_property
    def search_file(self) -> ValidDocument | None:
        """Return `agent/search.yao` (or `.yml`, `.yaml`), validated; None without the file. Raises
        ConfigError."""
        name = tree.only_name(self.root / "agent", "agent", SEARCH_FILES)
        if not name:
            return None
        document = read_document(self.root / "agent" / name, f"agent/{name}")
        return check_document(SearchSettings, document, self.environment, lenient=True)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Return the global layers. Raises ConfigError."""
        agent, search = self.agent_file, self.search_file
        raise_all([error for file in (agent, search) if file for error in file.errors])
        return (
            *((file_layer("global", agent),) if agent else ()),
            *((file_layer("global", search, under="search"),) if search else ()),
        )

    @cached_property
    def common(self) -> Resolved:
        """Return the settings without a package, folded once. Raises ConfigError."""
        return resolve(self.layers)

    @cached_property
    def settings(self) -> AppSettings:
        """Return the settings of the whole app. Raises ConfigError, also for a variable that is not
        set."""
        if self.agent_file is None:
            return AppSettings()
        raise_all(self.agent_file.errors)
        values = {
            key: value
            for key, value in self.agent_file.data.items()
            if key in AppSettings.model_fields
        }
        workers = self.agent_file.data.get("hooks", {}).get("workers")
        # A key that is not set is an error only for the embedder that needs it.
        values = {
            key: without_unset(value) if key == "embedders" else value
            for key, value in values.items()
        }
        need([values, workers])
        return AppSettings.model_validate({**values, "hook_workers": workers})

    @property
    def state(self) -> Path:
        """Return the folder for shards, SQLite files and compiled hooks."""
        return self.root / self.settings.state

    @property
    def databases(self) -> Mapping[str, DatabaseSettings]:
        """Return the databases by name, "" for that of models without `connection`, each with its
        address; the path of a SQLite file is relative to the app's folder."""
        own = self.settings.database
        url = own.url or f"sqlite:///{self.settings.state}/data.sqlite"
        every = {"": own.model_copy(update={"url": url}), **self.settings.databases}
        return {
            name: each.model_copy(update={"url": self._address(each.url)})
            for name, each in every.items()
        }

    def _address(self, url: str) -> str:
        file = url.removeprefix("sqlite:///")
        return url if file in (url, "", ":memory:") else f"sqlite:///{self.root.absolute() / file}"

    @cached_property
    def prompts(self) -> Prompts:
        """Return the prompts before those of every assistant (`agent/prompts.yml`, optional).
        Raises ConfigError."""
        path = self.root / PROMPTS_FILE
        if not path.is_file():
            return ()
        return read_prompts(path, PROMPTS_FILE, self.environment, path.parent)

    def script(self, name: str) -> HookScript | None:
        """Return a script of the app's folder `scripts`, whose functions every package may call by
        name; None when there is no such file. Raises ConfigError."""
        return script_file(self.root / SCRIPTS, SCRIPTS, name, folders=("",))

    def hook(self, id: str) -> HookScript | None:
        """Return the hook of an assistant, also where its configuration is broken. Raises
        UnknownName, and ConfigError for a tsconfig.json that cannot be read."""
        found = next((each for each in tree.assistants(self.root) if each.id == id), None)
        if found is None:
            return self.package(id).hook
        try:
            checked = check_package(found, self.environment)
        except ConfigError:  # the hook of a package that cannot be read is the usual file
            checked = None
        return hook_script(found, checked)

    def package(self, id: str) -> Package:
        """Return an assistant. Raises UnknownName with the nearest names, ConfigError when the
        package is broken."""
        if id in self.packages:
            return self.packages[id]
        # An id may come from a client or a hook: only a valid one is looked up on disk.
        missing = _explain_missing(self.root, id) if _ID.fullmatch(id) else ""
        return self.packages.named(id, hint=missing)

    @property
    def default_assistant(self) -> str:
        """Return the assistant for requests that name none (`uses.default`); "" without one. Raises
        ConfigError."""
        return self.common.settings.uses.default

    def assistant_or_default(self, id: str) -> str:
        """Return the id, or where it is empty that of the default. Raises UsageError if there is
        none."""
        if found := id or self.default_assistant:
            return found
        raise UsageError(
            "no assistant is named, and the app has no default",
            hint="name one, or set uses.default in agent/agent.yml",
        )

    def settings_for(
        self,
        package: Package,
        *,
        returned: CreateReturn | None = None,
        options: TurnOptions | None = None,
        trial: Trial | None = None,
    ) -> Resolved:
        """Return the settings of a run of `package`, folded from its layers. Raises
        ConfigError, HookReturnInvalid, UsageError."""
        metadata = options.metadata if options is not None else None
        tried = [trial.layer] if trial is not None else []
        above = [*tried, hook_layer(returned, metadata), request_layer(options)]
        if any(layer.data or layer.unknown for layer in above):
            return resolve([*self.layers, package.layer, *above])
        known = self._fold_cache.get(package.id)
        # A reload makes another package of the same id.
        if known is None or known[0] is not package:
            known = self._fold_cache[package.id] = (package, resolve([*self.layers, package.layer]))
        return known[1]

    def explain(self, assistant: str) -> list[Explained]:
        """Return every setting of an assistant and of the app, with the layer and place that set
        it. Raises UnknownName, ConfigError."""
        own = explain(self.settings_for(self.package(assistant)))
        return [*own, *explain_app(self.settings, self.agent_file)]

    @cached_property
    def _fold_cache(self) -> dict[str, tuple[Package, Resolved]]:
        """Return settings from files alone, by package: most turns need no others, and folding
        takes time."""
        return {}

    def connector(self, id: str, *, place: Place | None = None) -> ConnectorSpec:
        """Return a connector. Raises UnknownName; ConfigError when its file is broken or a variable
        that it needs is not set."""
        return self.connectors.named(id, place=place)

    def resolve_collection(
        self, assistant_id: str, name: str, *, place: Place | None = None
    ) -> CollectionSpec:
        """Return the assistant's own collection of that name, else the app's; full ids work as
        well. Raises UnknownName, ConfigError."""
        return _resolve(self.collections, assistant_id, name, place)

    def owner_of(self, id: str) -> str:
        """Return the assistant that declares a collection, model or toolkit: of several that the id
        begins with, the one with the longest id, since assistants may be nested. "" for the app's
        own."""
        if not id.startswith("agents."):
            return ""
        owners = (name for name in self.packages if id.startswith(f"agents.{name}."))
        return max(owners, key=len, default="")

    def resolve_model(
        self, assistant_id: str, name: str, *, place: Place | None = None
    ) -> ModelSpec:
        """Return a model by its name, as `resolve_collection` does for collections."""
        return _resolve(self.models, assistant_id, name, place)

    def model_id(self, assistant_id: str, name: str) -> str:
        """Return the full id of a model without reading its file. Raises UnknownName."""
        known = _id_of(self.models, assistant_id, name)
        return self.resolve_model(assistant_id, name).id if known is None else known

    def resolve_table(self, assistant_id: str, table: str) -> ModelSpec:
        """Return the model that declares a table: the assistant's own, the app's, or another's.
        Raises UnknownName, ConfigError."""
        own = f"agents.{assistant_id}."
        every = (*self.models, *self.models.built_in)
        ids = sorted(
            every,
            key=lambda id: (
                not id.startswith(own),
                id.startswith("agents."),
                id in self.models.built_in,
                id,
            ),
        )
        found = next((model for id in ids if (model := self.models[id]).table.name == table), None)
        if found is None:
            near = [id for id in self.models if id.startswith(own) or not id.startswith("agents.")]
            shown = [self.models[id].table.name for id in near]
            raise UnknownName(
                "table",
                table,
                shown,
                hint="" if shown else "a table is searched through a model that declares it",
            )
        return found

    def resolve_server(
        self, assistant_id: str, name: str, *, place: Place | None = None
    ) -> ServerSpec:
        """Return an MCP server by its name, as `resolve_collection` does for collections. Raises
        ConfigError also for a variable that is not set."""
        return _resolve(self.servers, assistant_id, name, place)

    def resolve_api(self, assistant_id: str, name: str, *, place: Place | None = None) -> ApiSpec:
        """Return an API by its name, as `resolve_server` does for MCP servers."""
        return _resolve(self.apis, assistant_id, name, place)

    def resolve_toolkit(
        self, assistant_id: str, name: str, *, place: Place | None = None
    ) -> ToolkitSpec:
        """Return a toolkit by its name, as `resolve_collection` does for collections. Raises
        ConfigError also for a type that does not exist."""
        return _resolve(self.toolkits, assistant_id, name, place)

    def connector_id(self, assistant_id: str, name: str) -> str:
        """Return the full id of the assistant's own connector of that name, else the name."""
        own = f"agents.{assistant_id}.{name}"
        return own if own in self.connectors else name


def load_app(
    root: Path,
    environment: Environment,
    connector_types: frozenset[str] = frozenset(),
    toolkit_types: frozenset[str] = frozenset(),
) -> App:
    """Return the app in the folder `root`. Lists folders and reads no file. Raises ConfigError when
    `root` is not an app."""
    if not (root / "assistants").is_dir() and not (root / "agent").is_dir():
        near = next(
            (folder for folder in root.absolute().parents if (folder / AGENT_FILE).is_file()), None
        )
        hint = (
            f"there is one in {str(near)!r}"
            if near
            else "an app has a folder 'assistants' or 'agent'"
        )
        raise ConfigError(f"{NO_APP} {str(root)!r}", hint=hint)
    found = list(tree.assistants(root))
    packages = {each.id: partial(load_package, each, root, environment) for each in found}
    return App(
        root=root,
        environment=environment,
        packages=Catalogue("assistant", packages),
        collections=declarations.collections(root, found, environment),
        models=declarations.models(root, found, environment),
        connectors=declarations.connectors(root, found, environment, connector_types),
        connector_types=connector_types,
        servers=declarations.servers(root, found, environment),
        apis=declarations.apis(root, found, environment),
        toolkits=declarations.toolkits(root, found, environment, toolkit_types),
        toolkit_types=toolkit_types,
    )


def _explain_missing(root: Path, id: str) -> str:
    """Return why the folder of an unknown id is not an assistant; "" if there is no such folder."""
    folder = f"assistants/{id.replace('.', '/')}"
    if not (root / folder).is_dir():
        return ""
    if not tree.has_package(root / folder):
        return f"{folder} has no {tree.PACKAGE}"
    owners = (owner for inside, owner in tree.inside_package(root) if inside == folder)
    owner = next(owners, None)
    return f"{folder} is part of the package {owner.id!r}" if owner else ""


def _id_of(catalogue: Catalogue[T], assistant_id: str, name: str) -> str | None:
    return next((id for id in (f"agents.{assistant_id}.{name}", name) if id in catalogue), None)


def _resolve(catalogue: Catalogue[T], assistant_id: str, name: str, place: Place | None) -> T:
    id = _id_of(catalogue, assistant_id, name)
    if id is not None:
        return catalogue[id]
    own = f"agents.{assistant_id}."
    known = sorted(id.removeprefix(own) for id in catalogue)
    return catalogue.named(name, place=place, hint=suggestion(name, known))

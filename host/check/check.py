"""Checks an app without running it: every file against its schema, every name against the existing
ones.

The composition root compiles hooks and queries stores, and adds its findings to these. The
libraries that extract entities are looked up here, since that needs no open host."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar

from groundhook.core.errors import ConfigError, HostError, Place, UnknownName
from groundhook.core.extras import Extra, install, lacking
from groundhook.core.problems import Problem, problems_of
from groundhook.core.settings import DISABLED, Settings
from groundhook.core.types.api_spec import ApiSpec
from groundhook.core.types.base import Value, dotted
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.model_schema import schema_errors
from groundhook.core.types.model_spec import (
    DELETED,
    PERMISSION,
    TIMESTAMPS,
    ModelSpec,
    ThroughSpec,
)
from groundhook.core.types.server_spec import ServerSpec
from groundhook.handlers.kb.graph.extract import (
    BUILTIN,
    SPACY,
    not_installed,
    unknown_kinds,
)
from groundhook.handlers.kb.graph.names import KINDS
from groundhook.host.check.env_file import env_file_problems
from groundhook.host.check.prompts import wrong_shared_variables, wrong_variables
from groundhook.host.check.references import References
from groundhook.host.check.toolkits import list_problems, toolkit_problems
from groundhook.host.check.unread_files import unread_files, unread_hooks
from groundhook.host.check.values import (
    wrong_deadlines,
    wrong_for_all,
    wrong_rows,
    wrong_together,
    wrong_values,
)
from groundhook.host.config import tree
from groundhook.host.config.declarations import LENIENT
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.environment import unset_in, without_unset
from groundhook.host.config.layers import Layer, file_layer
from groundhook.host.config.locations import Path
from groundhook.host.config.package import Package, check_package
from groundhook.host.config.packages import App
from groundhook.host.config.resolve import Resolved
from groundhook.host.config.validate import ValidDocument, check_document
from groundhook.host.llm.scripted import ScriptedConnector
from groundhook.host.tools.mcp.commands import missing_command
from groundhook.host.tools.toolkits import ToolkitOf

# Kinds that plug-ins register, and the name that is not known.
_OF_PLUGINS = re.compile(
    r"no (?:reranker or assistant|web search provider|embedding provider|connector type"
    r"|toolkit type) '(.*)'"
)
_DID_YOU_MEAN = re.compile(r"did you mean '(.*?)'")

P = ParamSpec("P")
T = TypeVar("T")

_SPECS: dict[str, type[Value]] = {
    "kb": CollectionSpec,
    "models": ModelSpec,
    "connectors": ConnectorSpec,
    "mcps": ServerSpec,
    "apis": ApiSpec,
}

_ANY_PROVIDER = (
    "set the key of a provider, such as TAVILY_API_KEY; `groundhook docs web-search` has all"
)


def check(
    app: App,
    assistant_id: str = "",
    *,
    providers: Collection[str] = (),
    rerankers: Collection[str] = (),
    collection: Callable[[CollectionSpec], tuple[Path, HostError] | None] = lambda _: None,
    toolkits: ToolkitOf | None = None,
    web_problem: Callable[[Settings], HostError | None] = lambda _: None,
) -> list[Problem]:
    """Return the problems found, each once, in the order of reading. With an assistant: only those
    of the app's own files and of that assistant. `providers` are the names of web search providers
    (empty: they are not checked), `rerankers` those of rerankers; `collection` returns a further
    problem with a collection, and its path in the file. `toolkits` makes a toolkit (None: they are
    not checked); `web_problem` returns why a web search has no provider. Raises UnknownName."""
    if assistant_id and assistant_id not in app.packages:
        raise UnknownName("assistant", assistant_id, app.packages)
    checking = _Check(
        app,
        assistant_id,
        frozenset(providers),
        frozenset(rerankers),
        collection,
        toolkits,
        web_problem,
    )
    checking.run()
    return list(dict.fromkeys(map(_unless_of_program, checking.found)))


def _unless_of_program(problem: Problem) -> Problem:
    """Return an unknown name of a kind that plug-ins register as a warning, unless it is nearly a
    known one: a program may hand that plug-in over when it opens the app."""
    unknown = _OF_PLUGINS.search(problem.message)
    near = _DID_YOU_MEAN.search(problem.hint)
    if unknown is None or (
        near and get_close_matches(unknown[1].lower(), [near[1].lower()], cutoff=0.8)
    ):
        return problem
    hint = f"{problem.hint}; right if a program passes its plug-in to open_host(plugins=…)"
    return replace(problem, severity="warning", hint=hint)


@dataclass
class _Check:
    app: App
    only: str
    providers: frozenset[str]
    rerankers: frozenset[str]
    collection: Callable[[CollectionSpec], tuple[Path, HostError] | None]
    toolkits: ToolkitOf | None
    web_problem: Callable[[Settings], HostError | None]
    found: list[Problem] = field(default_factory=list)

    def run(self) -> None:
        self._check_app()
        for place in self._list_assistants():
            self._check_package(place)
        for kind in tree.ENDINGS:
            for owner, place in self._list_declared(kind):
                self._check_declaration(kind, owner, place)
        self.found.extend(unread_files(self.app.root, list(self._list_assistants())))

    def _attempt(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return the result of `read`; if it raises, report the error and return None."""
        try:
            return read(*args, **kwargs)
        except HostError as exc:
            self.found.extend(problems_of(exc))
            return None

    def _check_app(self) -> None:
        for name in ("agent_file", "search_file", "prompts"):
            value: Any = self._attempt(getattr, self.app, name)
            if isinstance(value, ValidDocument):
                self.found.extend(value.findings())
                self._check_names(
                    file_layer("global", value, under="search" if name == "search_file" else ""), ""
                )
                self.found.extend(wrong_for_all(value))
            if name == "agent_file" and isinstance(value, ValidDocument):
                self._check_server(value)
        self.found.extend(wrong_shared_variables(self.app))
        self.found.extend(env_file_problems(self.app.root))

    def _check_server(self, file: ValidDocument) -> None:
        if file.data.get("server"):
            # Imported here because most apps have no settings of a server.
            from groundhook.host.check.server import server_problems

            self.found.extend(server_problems(self.app, file))

    def _check_package(self, place: tree.FoundPath) -> None:
        package = self._attempt(self.app.packages.named, place.id)
        if package is None:
            with suppress(ConfigError):  # `_read` has reported it
                self._check_names(
                    file_layer("assistant", check_package(place, self.app.environment)), place.id
                )
            return
        if package.folder != place.path:
            self.found.append(
                Problem(
                    "error", f"{package.shown!r} has the same id, {place.id!r}", Place(place.shown)
                )
            )
            return
        self.found.extend(package.warnings)
        if package.layer.checked is not None:
            self.found.extend(package.layer.checked.findings())
        self._check_names(package.layer, package.id)
        self.found.extend(unread_hooks(package, self.app.root))
        self._check_texts(package)
        with suppress(ConfigError):  # the broken layer is reported by itself
            resolved = self.app.settings_for(package)
            self.found.extend(wrong_together(package, resolved))
            self._check_web(resolved)
            if self.toolkits is not None:
                self.found.extend(list_problems(self.app, package, self.toolkits))

    def _check_web(self, resolved: Resolved) -> None:
        """Warn of a web search that no provider would answer; its key may be set where the app
        runs."""
        settings = resolved.settings
        searched = settings.search.web.enabled and settings.uses.search != DISABLED
        problem = self.web_problem(settings) if searched else None
        if problem is None:
            return
        named = settings.search.web.provider != "auto"
        self.found.append(
            Problem(
                "warning",
                f"'search.web' is on, and {problem.message}",
                resolved.place("search", "web", "enabled"),
                problem.hint if named else _ANY_PROVIDER,
            )
        )

    def _check_texts(self, package: Package) -> None:
        for name in package.presets:
            self._attempt(package.presets.named, name)
        for name in package.locales:
            self._attempt(package.locales.named, name)
        self.found.extend(wrong_variables(package, self.app.root))

    def _check_names(self, layer: Layer, owner: str) -> None:
        self.found.extend(
            References(self.app, layer, owner, self.providers, self.rerankers).problems()
        )
        self.found.extend(wrong_values(layer))

    def _check_declaration(self, kind: str, owner: str, place: tree.FoundPath) -> None:
        if kind == "toolkits":
            if self.toolkits is not None:
                self.found.extend(toolkit_problems(self.app, place, self.toolkits))
            return
        document: ConfigDocument | None = self._attempt(read_document, place.path, place.shown)
        if document is None:
            return
        checked = check_document(
            _SPECS[kind], document, self.app.environment, lenient=_SPECS[kind] in LENIENT
        )
        self.found.extend(checked.findings())
        if kind == "models":
            self.found.extend(_find_schema_problems(checked))
        with suppress(ConfigError):  # the app's own file is reported by itself
            self.found.extend(wrong_deadlines(checked, self.app.settings.turn_timeout_ms))
        if kind == "connectors" and not checked.errors:
            self._check_connector(place, checked)
        if checked.errors or unset_in(checked.data):
            return
        if kind == "models":
            model = self._attempt(self.app.models.named, place.id)
            if model is not None:
                self._check_model(owner, model, checked)
        if kind == "mcps":
            self._check_program(place, checked)
        if kind == "kb":
            self._check_collection(place, checked)

    def _check_collection(self, place: tree.FoundPath, checked: ValidDocument) -> None:
        """Check the collection's embedder and the delegate that extracts its entities. The delegate
        is called outside any assistant, so it needs its full name."""
        spec = self._attempt(self.app.collections.named, place.id)
        if spec is None:
            return
        if (wrong := self.collection(spec)) is not None:
            path, error = wrong
            self.found.append(
                Problem("error", error.message, checked.place(path), error.hint, error.code)
            )
        done = spec.entities.extractor.partition(":")[0]
        at = checked.place(("entities", "extractor"))
        # It may be installed where the app runs.
        if done == SPACY and (missing := not_installed(spec.entities.extractor)) is not None:
            self.found.append(Problem("warning", missing.message, at, missing.hint, missing.code))
        if done == BUILTIN and (unknown := unknown_kinds(spec.entities)):
            hint = (
                f"the rules know {', '.join(KINDS)}; name others in 'entities.dictionary', or have"
                " an assistant find them"
            )
            message = f"'entities.types': the rules find no {' or '.join(map(repr, unknown))}"
            self.found.append(
                Problem("warning", message, checked.place(("entities", "types")), hint)
            )
        if done not in (BUILTIN, SPACY):
            names = References(self.app, Layer(name="assistant", checked=checked), "")
            near = get_close_matches(done, (BUILTIN, SPACY), n=1)
            for problem in names.check_delegate(
                ("entities", "extractor"), "assistant", spec.entities.extractor
            ):
                self.found.append(
                    replace(problem, hint=f"did you mean {near[0]!r}?") if near else problem
                )

    def _check_connector(self, place: tree.FoundPath, checked: ValidDocument) -> None:
        """Report mistakes that would make every call of a connector fail. Values of unset variables
        are unknown and are skipped."""
        options = checked.data.get("options", {})
        if not unset_in(checked.data):
            self._attempt(self.app.connectors.named, place.id)
        if checked.data.get("type") == "scripted" and not unset_in(checked.data):
            try:
                ScriptedConnector(self.app.connectors.named(place.id))
            except ConfigError as exc:
                self.found.append(
                    Problem("error", exc.message, checked.place(("options", "script")), exc.hint)
                )
        kind = checked.data.get("type")
        if kind not in ("openai", "anthropic"):
            return
        self._check_extra(kind, checked.place(("type",)))
        if options.get("model", "") == "":
            self.found.append(
                Problem("error", "names no model", checked.place(("options",)), "set options.model")
            )

    def _check_program(self, place: tree.FoundPath, checked: ValidDocument) -> None:
        """Warn if a server's program is not installed here; it may be installed where the app
        runs."""
        self._check_extra("mcp", checked.place(()))
        spec = self._attempt(self.app.servers.named, place.id)
        if spec is not None and (
            missing := missing_command(spec, self.app.environment, self.app.root)
        ):
            hint = "install it, or name another in 'command'"
            self.found.append(
                Problem(
                    "warning", missing, checked.place(("command",)), hint, "server_not_configured"
                )
            )

    def _check_extra(self, name: Extra, place: Place) -> None:
        """Warn if an extra is not installed here; it may be installed where the app runs."""
        if module := lacking(name):
            message = f"needs the extra {name!r}, which is not installed: no {module!r}"
            self.found.append(Problem("warning", message, place, install(name)))

    def _check_model(self, owner: str, model: ModelSpec, checked: ValidDocument) -> None:
        columns = _list_columns(model)
        for number, row in enumerate(model.values):
            for key in sorted(row.keys() - columns):
                self._report_missing_column(
                    key, columns, checked.document.place(("values", number, key), of="key")
                )
        if all(row.keys() <= columns for row in model.values):
            self.found.extend(wrong_rows(model, checked))
        known = self._databases()
        if model.connection and known is not None and model.connection not in known:
            place = checked.place(("connection",))
            error = UnknownName("database", model.connection, known, place=place)
            self.found.append(Problem("error", error.message, place, error.hint, error.code))
        for name, relation in model.relations.items():
            at = ("relations", name)
            other = self._attempt(
                self.app.resolve_model, owner, relation.model, place=checked.place((*at, "model"))
            )
            if other is not None and relation.key not in _list_columns(other):
                self._report_missing_column(
                    relation.key,
                    _list_columns(other),
                    checked.place((*at, "key")),
                    f" of {other.id!r}",
                )
            if other is not None and other.connection != model.connection:
                message = f"{other.id!r} is in another database, and a query reads one"
                self.found.append(Problem("error", message, checked.place((*at, "model"))))
            if relation.through:
                self._check_join_table(owner, relation.through, checked, (*at, "through"))

    def _databases(self) -> Collection[str] | None:
        """Return the names of the app's further databases; None if its settings, whose mistakes
        have a check of their own, cannot be read."""
        try:
            return self.app.settings.databases
        except HostError:
            return None

    def _check_join_table(
        self, owner: str, through: ThroughSpec, checked: ValidDocument, at: Sequence[str]
    ) -> None:
        place = checked.place((*at, "model"))
        table = self._attempt(self.app.resolve_model, owner, through.model, place=place)
        columns = _list_columns(table) if table is not None else None
        for part, name in (("key", through.key), ("foreign", through.foreign)):
            if columns is not None and name not in columns:
                place = checked.place((*at, part))
                self._report_missing_column(name, columns, place, f" of {through.model!r}")

    def _report_missing_column(
        self, name: str, known: Collection[str], place: Place, of: str = ""
    ) -> None:
        error = UnknownName("column", name, known, place=place)
        self.found.append(Problem("error", error.message + of, place, error.hint, error.code))

    def _list_assistants(self) -> Iterator[tree.FoundPath]:
        return (place for place in tree.assistants(self.app.root) if self.only in ("", place.id))

    def _list_declared(self, kind: str) -> Iterator[tuple[str, tree.FoundPath]]:
        """Return the files of a kind, each with the assistant to which it belongs."""
        root = self.app.root
        yield from (("", place) for place in tree.declared(root, root, kind=kind))
        for owner in self._list_assistants():
            prefix = f"agents.{owner.id}."
            yield from (
                (owner.id, place)
                for place in tree.declared(owner.path, root, kind=kind, prefix=prefix)
            )


def _find_schema_problems(checked: ValidDocument) -> Iterator[Problem]:
    """Yield the places of a model that the reader accepts but the published schema refuses, so that
    an editor marks them."""
    reported = {error.place for error in checked.errors}
    for path, message in schema_errors(without_unset(checked.data)):
        place = checked.place(path)
        # At the key, as the reader reports a null: an empty value may be on the next line.
        if reported.isdisjoint((place, checked.document.place(path, of="key"))):
            yield Problem(
                "warning",
                f"{dotted(path)!r}: {message}",
                place,
                "docs/model.schema.json has the format",
            )


def _list_columns(model: ModelSpec) -> set[str]:
    return {column.name for column in model.columns} | {*TIMESTAMPS, DELETED, *PERMISSION}

"""The package of one assistant: its `package.yao`, prompts, locales, hook and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from groundhook.core.errors import ConfigError, ConfigErrors, Place
from groundhook.core.hook_engine import HookScript
from groundhook.core.problems import Problem, raise_all
from groundhook.core.settings import Settings
from groundhook.core.settings_files import PackageFile
from groundhook.host.config import tree
from groundhook.host.config.catalogue import Catalogue
from groundhook.host.config.documents import ConfigDocument, read_document
from groundhook.host.config.environment import Environment, need
from groundhook.host.config.hook_files import TOOLS, hook_script, script_file
from groundhook.host.config.layers import Layer, file_layer
from groundhook.host.config.locales import read_locales
from groundhook.host.config.prompts import Prompts, inline_prompts, read_prompts
from groundhook.host.config.validate import ValidDocument, check_document

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Package:
    """An assistant. `info` holds texts for clients (avatar, tags, placeholder, …), `locales` texts
    by language. `tools` is the script whose functions are tools, `src/tools.ts`."""

    id: str
    folder: Path
    shown: str
    name: str
    description: str
    layer: Layer
    prompts: Prompts
    presets: Catalogue[Prompts]
    locales: Catalogue[Mapping[str, Any]]
    hook: HookScript | None
    info: Mapping[str, Any]
    warnings: tuple[Problem, ...] = ()
    tools: HookScript | None = None

    def script(self, name: str) -> HookScript | None:
        """Return a script of the package whose functions are called by name; None when there is no
        such file. Raises ConfigError."""
        return script_file(self.folder, self.shown, name)

    @property
    def hook_file(self) -> str:
        """Return the path of the hook's file in messages; the package's folder where there is
        none."""
        return self.hook.shown_entry if self.hook else self.shown

    def prompts_for(self, preset: str, *, place: Place | None = None) -> Prompts:
        """Return the prompts of a preset; "" is the preset without a name. Raises UnknownName,
        ConfigError."""
        return self.presets.named(preset, place=place) if preset else self.prompts


def check_package(found: tree.FoundPath, environment: Environment) -> ValidDocument:
    """Return an assistant's `package.yao` (or `.yml`, `.yaml`), validated. Raises ConfigError when
    it cannot be read, or is there twice."""
    name = tree.only_name(found.path, found.shown, tree.PACKAGES) or tree.PACKAGE
    document = read_document(found.path / name, f"{found.shown}/{name}")
    return check_document(PackageFile, document, environment, switch_on=True, lenient=True)


def load_package(found: tree.FoundPath, root: Path, environment: Environment) -> Package:
    """Return the assistant in a folder. Raises ConfigError with everything that is wrong with
    it."""
    checked = check_package(found, environment)
    document = checked.document
    errors = list(checked.errors)
    prompts: Mapping[str, Prompts] = _collect_errors(
        errors, lambda: inline_prompts(document, environment, found.path), {}
    )
    own = found.path / tree.PROMPTS
    if own.is_file() and "default" not in prompts:
        plain: Prompts = _collect_errors(
            errors,
            lambda: read_prompts(own, f"{found.shown}/{tree.PROMPTS}", environment, found.path),
            (),
        )
        prompts = {**prompts, "default": plain}
    hook = _collect_errors(errors, lambda: hook_script(found, checked), None)
    tools = _collect_errors(errors, lambda: script_file(found.path, found.shown, TOOLS), None)
    raise_all(errors)
    extra = {
        key: value
        for key, value in checked.data.items()
        if key not in Settings.model_fields and key != "prompts"
    }
    need(extra)
    name, description = extra.pop("name", found.id), extra.pop("description", "")
    return Package(
        id=found.id,
        folder=found.path,
        shown=found.shown,
        name=name,
        description=description,
        layer=file_layer("assistant", checked),
        prompts=prompts.get("default", ()),
        presets=_presets(prompts, found, root, environment),
        locales=read_locales(found.path / "locales", root),
        hook=hook,
        info=extra,
        warnings=(*document.warnings, *_warn_of_doubles(found, document)),
        tools=tools,
    )


def _collect_errors(errors: list[ConfigError], read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except ConfigErrors as exc:
        errors.extend(exc.errors)
    except ConfigError as exc:
        errors.append(exc)
    return otherwise


def _presets(
    inline: Mapping[str, Prompts], found: tree.FoundPath, root: Path, environment: Environment
) -> Catalogue[Prompts]:
    loaders: dict[str, Callable[[], Prompts]] = {
        each.id: partial(read_prompts, each.path, each.shown, environment, found.path)
        for each in tree.presets(found.path, root)
    }
    loaders.update({name: partial(inline.__getitem__, name) for name in inline})
    return Catalogue("prompt preset", loaders)


def _warn_of_doubles(found: tree.FoundPath, document: ConfigDocument) -> Iterable[Problem]:
    """Yield a warning for each second file of which only one is used."""
    entries = [tree.shown(path, found.path) for path in tree.hooks(found.path)]
    if len(entries) > 1:
        message = f"two hooks, {entries[0]!r} and {entries[1]!r}; {entries[0]!r} runs"
        yield Problem("warning", message, Place(f"{found.shown}/{entries[1]}"))
    prompts = document.data.get("prompts")
    if isinstance(prompts, (list, str)) and (found.path / tree.PROMPTS).is_file():
        yield Problem(
            "warning",
            f"'prompts' in {Path(document.file).name} replaces this file",
            Place(f"{found.shown}/{tree.PROMPTS}"),
        )

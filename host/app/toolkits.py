"""The toolkits of an open app, each made when one of its tools is first listed."""

from __future__ import annotations

from functools import partial

from groundhook.host.app.parts import TOOLKIT, made
from groundhook.host.app.plugins import PluginContext
from groundhook.host.config.packages import App
from groundhook.host.core.tool_ports import Toolkit
from groundhook.host.core.types.toolkit_spec import ToolkitSpec


class Toolkits:
    """Toolkits by full id. A reload makes those again whose files have changed."""

    def __init__(
        self,
        app: App,
        context: PluginContext,
        made: dict[str, tuple[ToolkitSpec, Toolkit]] | None = None,
    ) -> None:
        self._app, self._context = app, context
        self._made = {} if made is None else made

    def with_app(self, app: App) -> Toolkits:
        """Return the toolkits of another reading of the app's files."""
        return Toolkits(app, self._context, dict(self._made))

    def __call__(self, id: str) -> Toolkit:
        """Return a toolkit by its full id. Raises UnknownName; ConfigError when its file is broken
        or needs a variable that is not set, PluginError when its type cannot be made."""
        spec = self._app.toolkits.named(id)
        made = self._made.get(id)
        if made is None or made[0] != spec:
            made = self._made[id] = (spec, self._make_toolkit(spec))
        return made[1]

    def _make_toolkit(self, spec: ToolkitSpec) -> Toolkit:
        types = self._context.plugins.toolkits
        part = types.part(spec.common.type)
        make = partial(types[spec.common.type], spec, self._context)
        return made(part and f"the toolkit {spec.id!r}, {part},", TOOLKIT, make)

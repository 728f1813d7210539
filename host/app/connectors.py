"""Connectors by id, each made when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from groundhook.core.ports import Connector
from groundhook.host.app.parts import CONNECTOR, make_part
from groundhook.host.app.plugins import PluginContext
from groundhook.host.config.packages import App


class Connectors:
    """The connectors of an app. `given` ones replace the declared connectors of the same id."""

    def __init__(self, app: App, context: PluginContext, given: Mapping[str, Connector]) -> None:
        self._app, self._context, self._given = app, context, given
        self._made = dict(given)

    def with_app(self, app: App) -> Connectors:
        """Return the connectors of another reading of the app's files."""
        return Connectors(app, self._context, self._given)

    def __call__(self, id: str) -> Connector:
        """Return a connector by its id. Raises UnknownName; ConfigError when its file is broken or
        needs a variable that is not set, PluginError when its type cannot be made."""
        if id not in self._made:
            spec = self._app.connector(id)
            types = self._context.plugins.connectors
            make = partial(types[spec.type], spec, self._context)
            self._made[id] = make_part(types.part(spec.type), CONNECTOR, make)
        return self._made[id]

"""The names of collections, models and APIs that an assistant may use."""

from __future__ import annotations

from dataclasses import dataclass

from groundhook.core.errors import NotPermitted
from groundhook.core.settings import Settings
from groundhook.core.types.api_spec import ApiSpec
from groundhook.core.types.query_language import OF_TABLE
from groundhook.host.config.packages import App


@dataclass(frozen=True)
class AssistantNames:
    """Resolve names for one assistant: `host.search.searcher.SourceNames`.

    An assistant may use its own collections and models, those of the app, and those of other
    assistants that its settings list. Neither a hook nor a client can reach the data of another
    assistant by its name. The empty id stands for the app's owner, who may use all.
    """

    app: App
    assistant_id: str
    settings: Settings

    def collection(self, name: str, /) -> str:
        """Return the full id of a collection. Raises UnknownName, NotPermitted."""
        id = self.app.resolve_collection(self.assistant_id, name).id
        listed = (*self.settings.kb.collections, *self.settings.search.kb.collections)
        return self._require_permitted("collection", id, listed, "kb.collections")

    def model(self, name: str, /) -> str:
        """Return the full id of a model, by its name or its table. Raises UnknownName,
        NotPermitted."""
        if name.startswith(OF_TABLE):
            id = self.app.resolve_table(self.assistant_id, name.removeprefix(OF_TABLE)).id
        else:
            id = self.app.resolve_model(self.assistant_id, name).id
        listed = (*self.settings.db.models, *self.settings.search.db.models)
        return self._require_permitted("model", id, listed, "db.models")

    def is_read(self, name: str, /) -> bool:
        """Return whether the file of a model has been read, by its name or table."""
        known, own = self.app.models, f"agents.{self.assistant_id}."
        if name.startswith(OF_TABLE):
            return all(map(known.is_read, known))
        return known.is_read(own + name if own + name in known else name)

    def api(self, name: str, /) -> ApiSpec:
        """Return an API of the assistant, or of the app. Raises UnknownName, NotPermitted, and
        ConfigError."""
        spec = self.app.resolve_api(self.assistant_id, name)
        if self.assistant_id and self.app.owner_of(spec.id) not in ("", self.assistant_id):
            raise NotPermitted(f"the API {spec.id!r} belongs to another assistant")
        return spec

    def _require_permitted(self, noun: str, id: str, listed: tuple[str, ...], key: str) -> str:
        own = self.app.owner_of(id) in ("", self.assistant_id)
        if own or not self.assistant_id or id in listed:
            return id
        raise NotPermitted(
            f"the {noun} {id!r} belongs to another assistant",
            hint=f"list it in {key} of package.yao to use it",
        )

"""The parts of a plug-in: the ports, and the values that pass through them.

    from groundhook.plugins import Plugin, PluginContext, Plugins

    def register(plugins: Plugins) -> None:
        plugins.rerankers.add("shortest", make_shortest)

    plugin = Plugin(register, requires=1)

docs/plugins.md shows a whole package for each kind of part. As in `groundhook`, each name is
imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundhook.host.app.plugins import PORT_VERSION as PORT_VERSION
    from groundhook.host.app.plugins import Entries as Entries
    from groundhook.host.app.plugins import Plugin as Plugin
    from groundhook.host.app.plugins import PluginContext as PluginContext
    from groundhook.host.app.plugins import Plugins as Plugins
    from groundhook.host.app.plugins import Source as Source
    from groundhook.host.core.ports import Connector as Connector
    from groundhook.host.core.ports import Delta as Delta
    from groundhook.host.core.ports import Documents as Documents
    from groundhook.host.core.ports import Embedder as Embedder
    from groundhook.host.core.ports import Finished as Finished
    from groundhook.host.core.ports import FollowsDeclarations as FollowsDeclarations
    from groundhook.host.core.ports import Found as Found
    from groundhook.host.core.ports import Handler as Handler
    from groundhook.host.core.ports import ModelCall as ModelCall
    from groundhook.host.core.ports import Ranked as Ranked
    from groundhook.host.core.ports import Records as Records
    from groundhook.host.core.ports import Reranker as Reranker
    from groundhook.host.core.ports import Scope as Scope
    from groundhook.host.core.ports import SourceResult as SourceResult
    from groundhook.host.core.ports import TextDelta as TextDelta
    from groundhook.host.core.ports import ToolDelta as ToolDelta
    from groundhook.host.core.ports import WebClient as WebClient
    from groundhook.host.core.ports import WebPages as WebPages
    from groundhook.host.core.settings import HttpSettings as HttpSettings
    from groundhook.host.core.settings import RerankSettings as RerankSettings
    from groundhook.host.core.sync_source import ListedDocuments as ListedDocuments
    from groundhook.host.core.sync_source import SyncBatch as SyncBatch
    from groundhook.host.core.sync_source import SyncRecord as SyncRecord
    from groundhook.host.core.sync_source import SyncSource as SyncSource
    from groundhook.host.core.tool_ports import Collections as Collections
    from groundhook.host.core.tool_ports import HasOwners as HasOwners
    from groundhook.host.core.tool_ports import ModelReply as ModelReply
    from groundhook.host.core.tool_ports import Models as Models
    from groundhook.host.core.tool_ports import Progress as Progress
    from groundhook.host.core.tool_ports import Toolkit as Toolkit
    from groundhook.host.core.tool_ports import ToolScope as ToolScope
    from groundhook.host.core.types.collection_queries import CollectionAnswer as CollectionAnswer
    from groundhook.host.core.types.collection_queries import (
        CollectionDocument as CollectionDocument,
    )
    from groundhook.host.core.types.collection_queries import CollectionMatch as CollectionMatch
    from groundhook.host.core.types.collection_queries import CollectionQuery as CollectionQuery
    from groundhook.host.core.types.collection_queries import Owner as Owner
    from groundhook.host.core.types.collection_queries import PutReport as PutReport
    from groundhook.host.core.types.collection_queries import partition as partition
    from groundhook.host.core.types.collection_spec import CollectionSpec as CollectionSpec
    from groundhook.host.core.types.collection_spec import EmbeddingSpec as EmbeddingSpec
    from groundhook.host.core.types.connector_spec import ConnectorSpec as ConnectorSpec
    from groundhook.host.core.types.documents import Block as Block
    from groundhook.host.core.types.documents import Document as Document
    from groundhook.host.core.types.documents import DocumentField as DocumentField
    from groundhook.host.core.types.documents import Reader as Reader
    from groundhook.host.core.types.model_spec import ModelSpec as ModelSpec
    from groundhook.host.core.types.search import Item as Item
    from groundhook.host.core.types.search import RecordQuery as RecordQuery
    from groundhook.host.core.types.search import SearchAccount as SearchAccount
    from groundhook.host.core.types.sync import SyncSettings as SyncSettings
    from groundhook.host.core.types.toolkit_spec import ToolkitSettings as ToolkitSettings
    from groundhook.host.core.types.toolkit_spec import ToolkitSpec as ToolkitSpec
    from groundhook.host.core.types.tools import Needs as Needs
    from groundhook.host.core.types.tools import Tool as Tool
    from groundhook.host.core.types.tools import ToolOutcome as ToolOutcome
    from groundhook.host.core.types.turn import Identity as Identity
    from groundhook.host.core.types.turn import Message as Message
    from groundhook.host.core.types.turn import Usage as Usage
    from groundhook.host.core.types.web import WebAnswer as WebAnswer
    from groundhook.host.core.types.web_providers import WebAccess as WebAccess
    from groundhook.host.core.types.web_providers import WebEngine as WebEngine
    from groundhook.host.core.types.web_providers import WebHit as WebHit
    from groundhook.host.core.types.web_providers import WebProvider as WebProvider
    from groundhook.host.core.types.web_providers import WebQuery as WebQuery

_HOMES = {
    "groundhook.host.app.plugins": (
        "PORT_VERSION",
        "Entries",
        "Plugin",
        "PluginContext",
        "Plugins",
        "Source",
    ),
    "groundhook.host.core.ports": (
        "Connector",
        "Delta",
        "Documents",
        "Embedder",
        "Finished",
        "FollowsDeclarations",
        "Found",
        "Handler",
        "ModelCall",
        "Ranked",
        "Records",
        "Reranker",
        "Scope",
        "SourceResult",
        "TextDelta",
        "ToolDelta",
        "WebClient",
        "WebPages",
    ),
    "groundhook.host.core.sync_source": (
        "ListedDocuments",
        "SyncBatch",
        "SyncRecord",
        "SyncSource",
    ),
    "groundhook.host.core.types.sync": ("SyncSettings",),
    "groundhook.host.core.tool_ports": (
        "Collections",
        "HasOwners",
        "ModelReply",
        "Models",
        "Progress",
        "ToolScope",
        "Toolkit",
    ),
    "groundhook.host.core.settings": ("HttpSettings", "RerankSettings"),
    "groundhook.host.core.types.documents": ("Block", "Document", "DocumentField", "Reader"),
    "groundhook.host.core.types.model_spec": ("ModelSpec",),
    "groundhook.host.core.types.collection_spec": ("CollectionSpec", "EmbeddingSpec"),
    "groundhook.host.core.types.connector_spec": ("ConnectorSpec",),
    "groundhook.host.core.types.collection_queries": (
        "CollectionAnswer",
        "CollectionDocument",
        "CollectionMatch",
        "CollectionQuery",
        "Owner",
        "PutReport",
        "partition",
    ),
    "groundhook.host.core.types.search": ("Item", "RecordQuery", "SearchAccount"),
    "groundhook.host.core.types.toolkit_spec": ("ToolkitSettings", "ToolkitSpec"),
    "groundhook.host.core.types.tools": ("Needs", "Tool", "ToolOutcome"),
    "groundhook.host.core.types.turn": ("Identity", "Message", "Usage"),
    "groundhook.host.core.types.web": ("WebAnswer",),
    "groundhook.host.core.types.web_providers": (
        "WebAccess",
        "WebEngine",
        "WebHit",
        "WebProvider",
        "WebQuery",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if not TYPE_CHECKING:  # which would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})

"""The parts of a plug-in: the ports, and the values that pass through them.

    from groundhook.plugins import Plugin, PluginContext, Plugins

    def register(plugins: Plugins) -> None:
        plugins.rerankers.add("shortest", make_shortest)

    plugin = Plugin(register, requires=1)

docs/plugins.md shows the ports with their signatures, and a whole package for each kind of part.
"""

from groundhook.core.ports import ChoosesRequests as ChoosesRequests
from groundhook.core.ports import Connector as Connector
from groundhook.core.ports import Delta as Delta
from groundhook.core.ports import Documents as Documents
from groundhook.core.ports import Embedder as Embedder
from groundhook.core.ports import Finished as Finished
from groundhook.core.ports import FollowsDeclarations as FollowsDeclarations
from groundhook.core.ports import Found as Found
from groundhook.core.ports import Handler as Handler
from groundhook.core.ports import ModelCall as ModelCall
from groundhook.core.ports import Ranked as Ranked
from groundhook.core.ports import Records as Records
from groundhook.core.ports import Reranker as Reranker
from groundhook.core.ports import Scope as Scope
from groundhook.core.ports import SourceResult as SourceResult
from groundhook.core.ports import TextDelta as TextDelta
from groundhook.core.ports import ToolDelta as ToolDelta
from groundhook.core.ports import WebClient as WebClient
from groundhook.core.ports import WebPages as WebPages
from groundhook.core.settings import HttpSettings as HttpSettings
from groundhook.core.settings import RerankSettings as RerankSettings
from groundhook.core.sync_source import ListedDocuments as ListedDocuments
from groundhook.core.sync_source import SyncBatch as SyncBatch
from groundhook.core.sync_source import SyncRecord as SyncRecord
from groundhook.core.sync_source import SyncSource as SyncSource
from groundhook.core.tool_ports import Collections as Collections
from groundhook.core.tool_ports import HasOwners as HasOwners
from groundhook.core.tool_ports import ModelReply as ModelReply
from groundhook.core.tool_ports import Models as Models
from groundhook.core.tool_ports import Progress as Progress
from groundhook.core.tool_ports import Toolkit as Toolkit
from groundhook.core.tool_ports import ToolScope as ToolScope
from groundhook.core.types.collection_queries import CollectionAnswer as CollectionAnswer
from groundhook.core.types.collection_queries import (
    CollectionDocument as CollectionDocument,
)
from groundhook.core.types.collection_queries import CollectionMatch as CollectionMatch
from groundhook.core.types.collection_queries import CollectionQuery as CollectionQuery
from groundhook.core.types.collection_queries import Owner as Owner
from groundhook.core.types.collection_queries import PutReport as PutReport
from groundhook.core.types.collection_queries import partition as partition
from groundhook.core.types.collection_spec import CollectionSpec as CollectionSpec
from groundhook.core.types.collection_spec import EmbeddingSpec as EmbeddingSpec
from groundhook.core.types.connector_spec import ConnectorSpec as ConnectorSpec
from groundhook.core.types.documents import Block as Block
from groundhook.core.types.documents import Document as Document
from groundhook.core.types.documents import DocumentField as DocumentField
from groundhook.core.types.documents import Reader as Reader
from groundhook.core.types.model_spec import ModelSpec as ModelSpec
from groundhook.core.types.search import Item as Item
from groundhook.core.types.search import RecordQuery as RecordQuery
from groundhook.core.types.search import SearchAccount as SearchAccount
from groundhook.core.types.sync import SyncSettings as SyncSettings
from groundhook.core.types.toolkit_spec import ToolkitSettings as ToolkitSettings
from groundhook.core.types.toolkit_spec import ToolkitSpec as ToolkitSpec
from groundhook.core.types.tools import Needs as Needs
from groundhook.core.types.tools import Tool as Tool
from groundhook.core.types.tools import ToolOutcome as ToolOutcome
from groundhook.core.types.turn import Identity as Identity
from groundhook.core.types.turn import Message as Message
from groundhook.core.types.turn import Usage as Usage
from groundhook.core.types.web import WebAnswer as WebAnswer
from groundhook.core.types.web_providers import WebAccess as WebAccess
from groundhook.core.types.web_providers import WebEngine as WebEngine
from groundhook.core.types.web_providers import WebHit as WebHit
from groundhook.core.types.web_providers import WebProvider as WebProvider
from groundhook.core.types.web_providers import WebQuery as WebQuery
from groundhook.host.app.plugins import PORT_VERSION as PORT_VERSION
from groundhook.host.app.plugins import Entries as Entries
from groundhook.host.app.plugins import Plugin as Plugin
from groundhook.host.app.plugins import PluginContext as PluginContext
from groundhook.host.app.plugins import Plugins as Plugins
from groundhook.host.app.plugins import Source as Source

__all__ = sorted(name for name in globals() if not name.startswith("_"))

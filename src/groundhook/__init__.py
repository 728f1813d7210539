"""An embeddable host for grounded chat assistants.

    from groundhook import open_host

    async with open_host("path/to/app") as host:
        async with host.stream("docs", "What is a hook?") as events:
            async for event in events: ...

The names below and those of `groundhook.plugins`, `groundhook.testing`, `groundhook.sync` and
`groundhook.memory` are the public surface; every other module may change in any release. Each name
is imported when it is first used, so `import groundhook` loads nothing else.
"""

from importlib import import_module
from os.path import dirname, isdir  # importing pathlib would take most of the time of this module

# Type checkers know the name. `typing` is not imported: with `python -m groundhook` Python may
# still look for it in the current folder, where anyone may have put a module of that name.
TYPE_CHECKING = False

_LINKS = ("core", "handlers", "hooks", "host", "rerankers", "toolkits")
if _FILES := [name for name in _LINKS if not isdir(f"{dirname(__file__)}/{name}")]:  # noqa: PTH112, PTH120
    raise ImportError(
        f"{', '.join(_FILES)} in {dirname(__file__)!r} must be folders or links to folders, and are"  # noqa: PTH120
        " not: git was not allowed to make links when it checked them out. Switch on links (on"
        " Windows: Developer Mode), then run `git config core.symlinks true`, delete the files and"
        " run `git checkout -- src/groundhook`; or install a wheel that was built where links are."
    )

if TYPE_CHECKING:
    from groundhook.core.audience import for_readers as for_readers
    from groundhook.core.errors import AlreadyDecided as AlreadyDecided
    from groundhook.core.errors import ChatBusy as ChatBusy
    from groundhook.core.errors import ConfigError as ConfigError
    from groundhook.core.errors import ConfigErrors as ConfigErrors
    from groundhook.core.errors import ContractBroken as ContractBroken
    from groundhook.core.errors import DelegateError as DelegateError
    from groundhook.core.errors import HookCrashed as HookCrashed
    from groundhook.core.errors import HookError as HookError
    from groundhook.core.errors import HookLimit as HookLimit
    from groundhook.core.errors import HookReturnInvalid as HookReturnInvalid
    from groundhook.core.errors import HookSyntaxError as HookSyntaxError
    from groundhook.core.errors import HookThrew as HookThrew
    from groundhook.core.errors import HookTypeError as HookTypeError
    from groundhook.core.errors import HookUnasked as HookUnasked
    from groundhook.core.errors import HostError as HostError
    from groundhook.core.errors import IngestError as IngestError
    from groundhook.core.errors import ModelContextExceeded as ModelContextExceeded
    from groundhook.core.errors import ModelError as ModelError
    from groundhook.core.errors import ModelGarbled as ModelGarbled
    from groundhook.core.errors import ModelNotConfigured as ModelNotConfigured
    from groundhook.core.errors import ModelRefused as ModelRefused
    from groundhook.core.errors import ModelStalled as ModelStalled
    from groundhook.core.errors import ModelTruncated as ModelTruncated
    from groundhook.core.errors import ModelUnreachable as ModelUnreachable
    from groundhook.core.errors import NotFound as NotFound
    from groundhook.core.errors import NotPermitted as NotPermitted
    from groundhook.core.errors import NotSupported as NotSupported
    from groundhook.core.errors import Place as Place
    from groundhook.core.errors import PluginError as PluginError
    from groundhook.core.errors import RequestRepeated as RequestRepeated
    from groundhook.core.errors import RerankError as RerankError
    from groundhook.core.errors import ServerError as ServerError
    from groundhook.core.errors import ServerMalformed as ServerMalformed
    from groundhook.core.errors import ServerNotConfigured as ServerNotConfigured
    from groundhook.core.errors import ServerRefused as ServerRefused
    from groundhook.core.errors import ServerTimeout as ServerTimeout
    from groundhook.core.errors import ServerUnreachable as ServerUnreachable
    from groundhook.core.errors import SourceError as SourceError
    from groundhook.core.errors import SourceMalformed as SourceMalformed
    from groundhook.core.errors import SourceNotConfigured as SourceNotConfigured
    from groundhook.core.errors import SourceRateLimited as SourceRateLimited
    from groundhook.core.errors import SourceRefused as SourceRefused
    from groundhook.core.errors import SourceTimeout as SourceTimeout
    from groundhook.core.errors import StorageError as StorageError
    from groundhook.core.errors import ToolFailed as ToolFailed
    from groundhook.core.errors import TooManyTurns as TooManyTurns
    from groundhook.core.errors import UnknownName as UnknownName
    from groundhook.core.errors import UsageError as UsageError
    from groundhook.core.errors import WorkerDied as WorkerDied
    from groundhook.core.problems import Problem as Problem
    from groundhook.core.types.chats import ChatMessage as ChatMessage
    from groundhook.core.types.chats import Feedback as Feedback
    from groundhook.core.types.chats import KeptAnswer as KeptAnswer
    from groundhook.core.types.chats import KeptCitation as KeptCitation
    from groundhook.core.types.events import CitationSeen as CitationSeen
    from groundhook.core.types.events import Cited as Cited
    from groundhook.core.types.events import (
        DocumentsSearchCompleted as DocumentsSearchCompleted,
    )
    from groundhook.core.types.events import DocumentsSearchStarted as DocumentsSearchStarted
    from groundhook.core.types.events import Event as Event
    from groundhook.core.types.events import Failed as Failed
    from groundhook.core.types.events import HookMessage as HookMessage
    from groundhook.core.types.events import SearchComplete as SearchComplete
    from groundhook.core.types.events import SearchFound as SearchFound
    from groundhook.core.types.events import SearchStart as SearchStart
    from groundhook.core.types.events import SourcesGiven as SourcesGiven
    from groundhook.core.types.events import StreamEnd as StreamEnd
    from groundhook.core.types.events import StreamStart as StreamStart
    from groundhook.core.types.events import Text as Text
    from groundhook.core.types.events import ToolProgress as ToolProgress
    from groundhook.core.types.events import ToolResult as ToolResult
    from groundhook.core.types.events import ToolStart as ToolStart
    from groundhook.core.types.events import Trace as Trace
    from groundhook.core.types.events import TraceNode as TraceNode
    from groundhook.core.types.events import Warned as Warned
    from groundhook.core.types.search import Item as Item
    from groundhook.core.types.search import SearchRequest as SearchRequest
    from groundhook.core.types.search import SearchResult as SearchResult
    from groundhook.core.types.tools import ToolInfo as ToolInfo
    from groundhook.core.types.tools import ToolOutcome as ToolOutcome
    from groundhook.core.types.turn import Identity as Identity
    from groundhook.core.types.turn import Message as Message
    from groundhook.core.types.turn import TurnOptions as TurnOptions
    from groundhook.core.types.turn import Usage as Usage
    from groundhook.handlers.kb.ingest.report import AddReport as AddReport
    from groundhook.handlers.kb.ingest.report import FileReport as FileReport
    from groundhook.host.app.host import Host as Host
    from groundhook.host.app.open_chat import OpenChat as OpenChat
    from groundhook.host.app.opening import open_host as open_host
    from groundhook.host.app.reload import Swap as Swap

    __version__: str

_HOMES = {
    "groundhook.core.types.tools": (
        "ToolInfo",
        "ToolOutcome",
    ),
    "groundhook.handlers.kb.ingest.report": ("AddReport", "FileReport"),
    "groundhook.host.app.open_chat": ("OpenChat",),
    "groundhook.host.app.host": ("Host",),
    "groundhook.host.app.opening": ("open_host",),
    "groundhook.host.app.reload": ("Swap",),
    "groundhook.core.audience": ("for_readers",),
    "groundhook.core.errors": (
        "AlreadyDecided",
        "ChatBusy",
        "ConfigError",
        "ConfigErrors",
        "ContractBroken",
        "DelegateError",
        "HookCrashed",
        "HookError",
        "HookLimit",
        "HookReturnInvalid",
        "HookSyntaxError",
        "HookThrew",
        "HookTypeError",
        "HookUnasked",
        "HostError",
        "IngestError",
        "ModelContextExceeded",
        "ModelError",
        "ModelGarbled",
        "ModelNotConfigured",
        "ModelRefused",
        "ModelStalled",
        "ModelTruncated",
        "ModelUnreachable",
        "NotFound",
        "NotPermitted",
        "NotSupported",
        "Place",
        "PluginError",
        "RequestRepeated",
        "RerankError",
        "ServerError",
        "ServerMalformed",
        "ServerNotConfigured",
        "ServerRefused",
        "ServerTimeout",
        "ServerUnreachable",
        "SourceError",
        "SourceMalformed",
        "SourceNotConfigured",
        "SourceRateLimited",
        "SourceRefused",
        "SourceTimeout",
        "StorageError",
        "TooManyTurns",
        "ToolFailed",
        "UnknownName",
        "UsageError",
        "WorkerDied",
    ),
    "groundhook.core.problems": ("Problem",),
    "groundhook.core.types.chats": (
        "ChatMessage",
        "Feedback",
        "KeptAnswer",
        "KeptCitation",
    ),
    "groundhook.core.types.events": (
        "CitationSeen",
        "Cited",
        "DocumentsSearchCompleted",
        "DocumentsSearchStarted",
        "Event",
        "Failed",
        "HookMessage",
        "SearchComplete",
        "SearchFound",
        "SearchStart",
        "SourcesGiven",
        "StreamEnd",
        "StreamStart",
        "Text",
        "ToolProgress",
        "ToolResult",
        "ToolStart",
        "Trace",
        "TraceNode",
        "Warned",
    ),
    "groundhook.core.types.search": (
        "Item",
        "SearchRequest",
        "SearchResult",
    ),
    "groundhook.core.types.turn": (
        "Identity",
        "Message",
        "TurnOptions",
        "Usage",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])

if not TYPE_CHECKING:  # which would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # its import takes longer than all the rest

            value: object = version("groundhook")
        elif name in _HOME_OF:
            value = getattr(import_module(_HOME_OF[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""An embeddable host for grounded chat assistants.

    from groundhook import open_host

    async with open_host("path/to/app") as host:
        async with host.stream("docs", "What is a hook?") as events:
            async for event in events: ...

The names below and those of `groundhook.plugins` are the public surface; every other module may
change in any release. Each name is imported when it is first used, so `import groundhook` loads
nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundhook.host.app.host import Host as Host
    from groundhook.host.app.host import open_host as open_host
    from groundhook.host.core.types.search import Item as Item
    from groundhook.host.core.types.search import SearchRequest as SearchRequest
    from groundhook.host.core.types.search import SearchResult as SearchResult
    from groundhook.host.core.types.turn import Identity as Identity
    from groundhook.host.core.types.turn import Message as Message

_HOMES = {
    "Host": "groundhook.host.app.host",
    "Identity": "groundhook.host.core.types.turn",
    "Item": "groundhook.host.core.types.search",
    "Message": "groundhook.host.core.types.turn",
    "SearchRequest": "groundhook.host.core.types.search",
    "SearchResult": "groundhook.host.core.types.search",
    "open_host": "groundhook.host.app.host",
}

__all__ = ["Host", "Identity", "Item", "Message", "SearchRequest", "SearchResult", "open_host"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'groundhook' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

"""A reranker that prefers short texts. `uses.rerank: shortest`."""

from collections.abc import Sequence

from groundhook import Item
from groundhook.plugins import Plugin, PluginContext, Plugins, Ranked, RerankSettings, Scope


class Shortest:
    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        """A score of 1 for an empty text, of 0.5 for one of 100 characters."""
        return [Ranked(index, 100 / (100 + len(item.content))) for index, item in enumerate(items)]


def make_shortest(_: PluginContext) -> Shortest:
    return Shortest()


def register(plugins: Plugins) -> None:
    plugins.rerankers.add("shortest", make_shortest)


plugin = Plugin(register, requires=1)

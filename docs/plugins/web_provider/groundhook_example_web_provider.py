"""A web search provider: a list of pages that needs no network. `search.web.provider: pages`."""

from groundhook.plugins import (
    Plugin,
    PluginContext,
    Plugins,
    WebAccess,
    WebHit,
    WebProvider,
    WebQuery,
)

PAGES = [
    WebHit(url="https://example.org/pears", title="Pears", content="Pears are ripe in autumn."),
    WebHit(url="https://example.org/plums", title="Plums", content="Plums are ripe in August."),
]


class Pages:
    def __init__(self, access: WebAccess) -> None:
        self._access = access  # `key`, `host`, and `closing` for connections

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        """Pages with a word of the question in their title."""
        words = ask.query.lower().split()
        return [page for page in PAGES if any(word in page.title.lower() for word in words)]


def make_pages(_: PluginContext) -> WebProvider:
    # With a `host` of its own a provider needs a key, from the variable that is named here.
    return WebProvider(
        variable="PAGES_API_KEY",
        host="https://example.org",
        max_results=10,
        make=Pages,
        can=frozenset(),
    )


def register(plugins: Plugins) -> None:
    plugins.web_providers.add("pages", make_pages)


plugin = Plugin(register, requires=1)

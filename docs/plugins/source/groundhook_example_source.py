"""A search source that joins the type kb: entries of a glossary whose term is in the question."""

from groundhook import Item, SearchRequest
from groundhook.plugins import Found, Plugin, PluginContext, Plugins, Scope, Source

TERMS = {
    "isolate": "An isolate is one V8 engine, with a heap that no other engine can reach.",
    "tenant": "A tenant is a customer whose documents nobody else may see.",
}


class Glossary:
    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Entries of the terms that the question names."""
        named = [term for term in TERMS if term in request.query.lower()]
        items = [
            Item(type="kb", key=f"glossary:{term}", title=term, content=TERMS[term], score=0.9)
            for term in named
        ]
        return Found(items=tuple(items[: request.limit]), total=len(items))


def make_glossary(_: PluginContext) -> Glossary:
    return Glossary()


def register(plugins: Plugins) -> None:
    # `plugins.sources.replace("kb", …)` would take the place of the built-in knowledge base.
    plugins.sources.add("glossary", Source(type="kb", make=make_glossary))


plugin = Plugin(register, requires=1)

"""A search source that joins the type kb: entries of a glossary whose term is in the question. It
implements `Documents` as well, so a message may refer to an entry as to a document."""

from groundhook import Item, SearchRequest, SourceError
from groundhook.plugins import Plugin, PluginContext, Plugins, Scope, Source, SourceResult

TERMS = {
    "isolate": "An isolate is one V8 engine, with a heap that no other engine can reach.",
    "tenant": "A tenant is a customer whose documents nobody else may see.",
}


class Glossary:
    def can_handle(self, request: SearchRequest, scope: Scope, /) -> bool:
        """Whether the question names a term: the glossary is not asked about others."""
        return any(term in request.query.lower() for term in TERMS)

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Entries of the terms that the question names."""
        named = [term for term in TERMS if term in request.query.lower()]
        items = [entry(term, 0.9) for term in named]
        return SourceResult(items=tuple(items[: request.limit]), total=len(items))

    async def fetch_document(
        self, collection: str, document_id: str, scope: Scope, /
    ) -> SourceResult:
        """The entry of the term `document_id`, whatever the collection."""
        if document_id not in TERMS:
            raise SourceError(f"the glossary has no entry {document_id!r}")
        return SourceResult(items=(entry(document_id, 1.0),), total=1)


def entry(term: str, score: float) -> Item:
    return Item(
        type="kb",
        key=f"glossary:{term}",
        title=term,
        content=TERMS[term],
        score=score,
        document_id=term,
    )


def make_glossary(_: PluginContext) -> Glossary:
    return Glossary()


def register(plugins: Plugins) -> None:
    # `plugins.sources.replace("kb", …)` would take the place of the built-in knowledge base.
    plugins.sources.add("glossary", Source(type="kb", make=make_glossary))


plugin = Plugin(register, requires=1)

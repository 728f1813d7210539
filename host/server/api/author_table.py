"""The endpoints for authors of assistants and keepers of collections, a part of
`table.ENDPOINTS`."""

from __future__ import annotations

from groundhook.host.server.api import knowledge as knowledge_api
from groundhook.host.server.api import knowledge_search, knowledge_sync
from groundhook.host.server.api import meta as meta_api
from groundhook.host.server.api import scripts as scripts_api
from groundhook.host.server.api import trials as trials_api
from groundhook.host.server.api.knowledge_search import KnowledgeSearch
from groundhook.host.server.api.trials import KeptTest, TrialRequest
from groundhook.host.server.serving import Endpoint

AUTHOR_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/assistants/{assistant}/settings",
        handler=meta_api.explain,
        about="Every setting with layer, file and line, as `groundhook config explain`.",
        scope="author",
    ),
    Endpoint(
        method="GET",
        path="/api/assistants/{assistant}/scripts",
        handler=scripts_api.lines,
        about="The lines of a script of an assistant (`?file=src/index.ts`) around one of them"
        " (`&line=12`), to which log lines and warnings lead.",
        scope="author",
    ),
    Endpoint(
        method="GET",
        path="/api/check",
        handler=meta_api.check,
        about="Problems with the app's files, as `groundhook check`; with a key that lists its"
        " assistants, those in their folders.",
        scope="author",
    ),
    Endpoint(
        method="POST",
        path="/api/assistants/{assistant}/tests",
        handler=trials_api.keep_test,
        about="A row for the suite `tests/workbench.suite.jsonl` of an assistant: shown, or written"
        " with `server.author_writes` and from this machine.",
        scope="author",
        body=KeptTest,
    ),
    Endpoint(
        method="POST",
        path="/api/trials",
        handler=trials_api.create,
        about="Questions to an assistant as in its files and with a trial of other settings and"
        " prompts, both at once: a line of JSON for each answer, for what moved in its ranking, and"
        " for what got better and worse.",
        scope="author",
        body=TrialRequest,
    ),
    Endpoint(
        method="GET",
        path="/api/kb",
        handler=knowledge_api.list_collections,
        about="The collections that the caller may keep, with the documents of its tenant counted.",
        scope="kb",
    ),
    Endpoint(
        method="GET",
        path="/api/kb/{collection}",
        handler=knowledge_api.list_documents,
        about="The documents of a collection, up to 1,000.",
        scope="kb",
    ),
    Endpoint(
        method="POST",
        path="/api/kb/{collection}/search",
        handler=knowledge_search.search,
        about="The passages that a question finds in a collection and those that come next, each"
        " with its scores by meaning and by words, and why a document that is expected is not among"
        " them.",
        scope="kb",
        body=KnowledgeSearch,
    ),
    Endpoint(
        method="POST",
        path="/api/kb/{collection}/documents",
        handler=knowledge_api.add_documents,
        about="Add the files of a form (`multipart/form-data`, one file a part): a line of JSON for"
        " each step, the outcome of each file, and the counts.",
        scope="kb",
    ),
    Endpoint(
        method="DELETE",
        path="/api/kb/{collection}/documents/{document:path}",
        handler=knowledge_api.remove_document,
        status=204,
        about="Remove a document.",
        scope="kb",
    ),
    Endpoint(
        method="GET",
        path="/api/syncs",
        handler=knowledge_sync.list_syncs,
        about="The syncs of the toolkits that the caller may sync, with their state.",
        scope="kb",
    ),
    Endpoint(
        method="POST",
        path="/api/syncs/{toolkit}",
        handler=knowledge_sync.sync,
        about="Sync a toolkit now: a line of JSON for each progress, and the result. It ends when"
        " the client leaves, and the next one continues it.",
        scope="kb",
    ),
)

"""The table of endpoints, from which the routes, the OpenAPI document, `docs/http.md` and the check
of scopes are made."""

from __future__ import annotations

from groundhook.core.types.chats import Feedback
from groundhook.host.output.dialects.native import Answer
from groundhook.host.server.api import ag_ui as ag_ui_api
from groundhook.host.server.api import chats as chat_api
from groundhook.host.server.api import mcp as mcp_api
from groundhook.host.server.api import meta as meta_api
from groundhook.host.server.api import sources as sources_api
from groundhook.host.server.api import tools as tool_api
from groundhook.host.server.api import turns as turn_api
from groundhook.host.server.api import ui_chat as ui_chat_api
from groundhook.host.server.api.ag_ui import RunRequest
from groundhook.host.server.api.author_table import AUTHOR_ENDPOINTS
from groundhook.host.server.api.chats import (
    Again,
    ChatChanges,
    ChatTurn,
    DecisionRequest,
    NewChat,
)
from groundhook.host.server.api.meta import AssistantInfo, SearchAsk, SignInRequest
from groundhook.host.server.api.openai_table import OPENAI_ENDPOINTS
from groundhook.host.server.api.ui_chat import UIChatRequest
from groundhook.host.server.request_body import TurnRequest
from groundhook.host.server.serving import Endpoint

ASSISTANT_QUERY = (
    (
        "assistant",
        "id of the assistant whose tools these are; required without the scope `author`, and with a"
        " key that lists its assistants",
    ),
)
LOCALE_QUERY = (("locale", "language of its texts; default: that of `Accept-Language`"),)
VIEW_QUERY = (
    "view",
    "`blocks`: with events `blocks`, the Markdown of the answer so far as a tree: the blocks from"
    " `from` on are replaced",
)
STREAM_QUERY = (
    ("events", "only these types of events, separated by commas: `text,citation,stream_end`"),
    ("trace", "`1`: with the steps of the turn; for the scope `author`"),
    VIEW_QUERY,
)
STYLE_QUERY = (("citations", "`numbers`, `links`, `markers` or `none`: how they are shown"),)
BRANCH_QUERY = (
    ("limit", "only the last messages, 1–200; `earlier` says whether others come before them"),
    ("before", "id of a message: only those before it"),
    ("view", "`blocks`: each answer has `blocks` too, its Markdown as a tree"),
)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/",
        handler=meta_api.index,
        about="The page for browsers; for programs these endpoints and a request to try.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/assets/{version}/{name}",
        handler=meta_api.asset,
        part="page",
        about="A file of the page. Its address has the hash of all files, so it is kept for ever.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/widget.js",
        handler=meta_api.widget,
        part="page",
        about="The module that defines `<groundhook-chat>` in a page of another site.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/healthz",
        handler=meta_api.healthz,
        about="Whether the process answers.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        handler=meta_api.readyz,
        about="Whether it accepts turns: 503 while it stops, or when the app's files are"
        " broken or chats cannot be stored.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=meta_api.metrics,
        about="Figures for Prometheus: from this machine, or with the scope `metrics`.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        handler=meta_api.openapi,
        about="These endpoints as OpenAPI 3.1.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/problems/{code}",
        handler=meta_api.problem,
        about="What the code of an error means.",
        open=True,
    ),
    Endpoint(
        method="GET",
        path="/api/me",
        handler=meta_api.me,
        about="The identity of the caller, and what remains of this minute's limits.",
    ),
    Endpoint(
        method="POST",
        path="/api/session",
        handler=meta_api.sign_in,
        about="Exchange a key, or a link that is used once, for a cookie for pages of this server.",
        open=True,
        body=SignInRequest,
    ),
    Endpoint(
        method="DELETE",
        path="/api/session",
        handler=meta_api.sign_out,
        status=204,
        about="Sign out.",
    ),
    Endpoint(
        method="GET",
        path="/api/assistants",
        handler=meta_api.assistants,
        about="The assistants that the caller may use.",
        scope="chat",
        query=LOCALE_QUERY,
    ),
    Endpoint(
        method="GET",
        path="/api/assistants/{assistant}",
        handler=meta_api.assistant,
        about="One assistant.",
        scope="chat",
        query=LOCALE_QUERY,
        answer=AssistantInfo,
    ),
    Endpoint(
        method="POST",
        path="/api/assistants/{assistant}/chat",
        handler=ui_chat_api.ui_chat,
        about="A turn as a UI message stream of the AI SDK (`useChat`).",
        scope="chat",
        body=UIChatRequest,
        query=STYLE_QUERY,
    ),
    Endpoint(
        method="GET",
        path="/api/assistants/{assistant}/chat/{chat}/stream",
        handler=ui_chat_api.ui_resume,
        about="The stream of the chat's turn that is under way, from its beginning; 204: none is.",
        scope="chat",
        query=STYLE_QUERY,
    ),
    Endpoint(
        method="POST",
        path="/api/assistants/{assistant}/chat/{chat}/stop",
        handler=ui_chat_api.ui_stop,
        about="Stop the chat's turn that is under way: 202, or 200 if none is.",
        scope="chat",
    ),
    Endpoint(
        method="POST",
        path="/api/assistants/{assistant}/ag-ui",
        handler=ag_ui_api.ag_ui,
        about="A turn as a run of AG-UI.",
        scope="chat",
        body=RunRequest,
        query=STYLE_QUERY,
    ),
    *AUTHOR_ENDPOINTS,
    Endpoint(
        method="POST",
        path="/api/turns",
        handler=turn_api.create,
        about="A turn without a chat: events, or one answer with `Accept: application/json`.",
        scope="chat",
        body=TurnRequest,
        answer=Answer,
        query=STREAM_QUERY,
    ),
    Endpoint(
        method="GET",
        path="/api/turns/{turn}",
        handler=turn_api.state,
        about="The state of a turn, its usage and its answer so far.",
        scope="chat",
        answer=Answer,
    ),
    Endpoint(
        method="GET",
        path="/api/turns/{turn}/events",
        handler=turn_api.events,
        about="The stream from its beginning, or from the event after `Last-Event-ID`.",
        scope="chat",
        query=(("after", "as `Last-Event-ID`"), *STREAM_QUERY),
    ),
    Endpoint(
        method="POST",
        path="/api/turns/{turn}/stop",
        handler=turn_api.stop,
        about="Stop the turn; its events so far remain. 202, or 200 if it was over already.",
        scope="chat",
    ),
    Endpoint(
        method="POST",
        path="/api/search",
        handler=meta_api.search,
        about="One search, without a language model. With `Accept: text/csv` all rows of an answer"
        " from a database, up to 10,000; the header `Groundhook-Total` says how many there are.",
        scope="search",
        body=SearchAsk,
    ),
    Endpoint(
        method="GET",
        path="/api/chats",
        handler=chat_api.list_chats,
        part="chats",
        about="The caller's chats, the last changed first.",
        scope="chats",
        query=(
            ("q", "text that the title contains, in upper or lower case"),
            ("limit", "1–200, default 50"),
            ("after", "`next` of the previous page"),
            ("archived", "`1`: the archived chats instead"),
        ),
    ),
    Endpoint(
        method="POST",
        path="/api/chats",
        handler=chat_api.create_chat,
        status=201,
        part="chats",
        about="Create a chat with an assistant.",
        scope="chats",
        body=NewChat,
    ),
    Endpoint(
        method="GET",
        path="/api/chats/{chat}",
        handler=chat_api.get_chat,
        part="chats",
        about="A chat, with the messages of the branch that is shown.",
        scope="chats",
        query=BRANCH_QUERY,
    ),
    Endpoint(
        method="PATCH",
        path="/api/chats/{chat}",
        handler=chat_api.change_chat,
        part="chats",
        about="Change the title or the branch that is shown; archive the chat or restore it.",
        scope="chats",
        body=ChatChanges,
    ),
    Endpoint(
        method="DELETE",
        path="/api/chats/{chat}",
        handler=chat_api.delete_chat,
        status=204,
        part="chats",
        about="Remove a chat with everything stored for it.",
        scope="chats",
    ),
    Endpoint(
        method="GET",
        path="/api/chats/{chat}/messages",
        handler=chat_api.get_branch,
        part="chats",
        about="The messages of a branch.",
        scope="chats",
        query=(
            ("leaf", "id of its last message; default: the branch that is shown"),
            *BRANCH_QUERY,
        ),
    ),
    Endpoint(
        method="POST",
        path="/api/chats/{chat}/turns",
        handler=chat_api.run_turn,
        part="chats",
        about="Run a turn of the chat: the next question, or a rephrased one.",
        scope="chats",
        body=ChatTurn,
        answer=Answer,
        query=STREAM_QUERY,
    ),
    Endpoint(
        method="POST",
        path="/api/chats/{chat}/regenerate",
        handler=chat_api.regenerate_answer,
        part="chats",
        about="Regenerate an answer; the earlier one is kept.",
        scope="chats",
        body=Again,
        answer=Answer,
        query=STREAM_QUERY,
    ),
    Endpoint(
        method="POST",
        path="/api/chats/{chat}/decisions",
        handler=chat_api.decide,
        part="chats",
        about="Approve or refuse the calls that wait in an answer; the turn that continues it.",
        scope="chats",
        body=DecisionRequest,
        answer=Answer,
        query=STREAM_QUERY,
    ),
    Endpoint(
        method="GET",
        path="/api/chats/{chat}/export",
        handler=chat_api.export_chat,
        part="chats",
        about="A chat as one document.",
        scope="chats",
        query=(("format", "`json` or `markdown`"),),
    ),
    Endpoint(
        method="GET",
        path="/api/chats/{chat}/files/{file}",
        handler=chat_api.get_file,
        part="chats",
        about="A file of a question: `file_id` of its part.",
        scope="chats",
    ),
    Endpoint(
        method="PUT",
        path="/api/messages/{message}/feedback",
        handler=chat_api.rate_answer,
        status=204,
        part="chats",
        about="Store the reader's feedback on an answer.",
        scope="chats",
        body=Feedback,
    ),
    Endpoint(
        method="GET",
        path="/api/sources/kb/{collection}/{document:path}",
        handler=sources_api.document,
        about="A document that a citation points at: its passages, those of the extent marked.",
        scope="chat",
        query=(
            ("start", "first character of the extent"),
            ("end", "the character after its last one"),
            ("view", "`blocks`: each passage has `blocks` too, its Markdown as a tree"),
        ),
    ),
    Endpoint(
        method="GET",
        path="/api/sources/db/{model}/{record}",
        handler=sources_api.record,
        about="A record that a citation points at, as the caller may see it.",
        scope="chat",
        query=(("view", "`blocks`: with its `title`, and its `fields` by their labels"),),
    ),
    Endpoint(
        method="GET",
        path="/api/sources/rows/{token}",
        handler=sources_api.rows,
        about="All rows of a table that a search returned a part of, up to 10,000, as CSV, as the"
        " caller may see them now. `search_complete` has the address in `tables`.",
        scope="chat",
    ),
    Endpoint(
        method="GET",
        path="/api/tools",
        handler=tool_api.list_tools,
        about="The tools of an assistant that the caller may use.",
        scope="search",
        query=ASSISTANT_QUERY,
    ),
    Endpoint(
        method="GET",
        path="/api/tools/{tool}",
        handler=tool_api.get_tool,
        about="One tool, with the schemas of its arguments and its answer.",
        scope="search",
        query=ASSISTANT_QUERY,
    ),
    Endpoint(
        method="POST",
        path="/api/tools/{tool}",
        handler=tool_api.call_tool,
        about=(
            "Call a tool with the body as its arguments; with `Accept: text/event-stream` its"
            " progress, then its result."
        ),
        scope="search",
        query=ASSISTANT_QUERY,
    ),
    Endpoint(
        method="POST",
        path=mcp_api.PATH,
        handler=mcp_api.endpoint,
        part="mcp",
        about="The app as an MCP server (streamable HTTP).",
        scope="search",
        query=(("assistant", "only the tools and collections of this one"),),
    ),
    Endpoint(
        method="GET",
        path=mcp_api.METADATA,
        handler=mcp_api.metadata,
        part="mcp",
        about="Where clients of the MCP server sign in (RFC 9728).",
        open=True,
    ),
    *OPENAI_ENDPOINTS,
)

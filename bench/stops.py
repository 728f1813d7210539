"""How long a stranger can stop the server: `/healthz` is read the whole time while every body,
path, header, question, host call, answer of a model and document is pumped up to its limit.

    make bench NAME=stops [ARGS="'a ' '['"]

The server is a process of its own, and so is the reader of `/healthz`. A stop is the part of an
answer's delay that the server spent computing, so that other work of the machine does not count.
The floor is the longest stop of the same server while it answers ordinary questions. Prints JSON
lines {"figure", "value", "unit", "floor", "floor_is", "ratio"} on standard output, and the ten
longest stops on standard error.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import figure
from bench.stops_endpoints import JSON, LINE, QUESTION, endpoints, pumped, upload
from bench.stops_formats import FORMATS
from bench.stops_hooks import CALLS, OFTEN, hooked
from bench.stops_large import large, wide
from bench.stops_served import ENGINES, STEPS, STREAMED, Campaign, campaign, ollama
from groundhook.core.types.uses import ENTITIES

ARGUMENT = 900_000  # almost the limit of a host call's arguments
ANSWER = 1_000_000  # of a model, a tool, a page
FOUND = 1_500_000  # of a web search: almost the limit of its answer, when it is escaped
OLLAMAS = 8  # `/api/check` takes longer with each assistant of the app
FOUND_PART = 25_000  # of an answer that has it in 112 places
QUERY, ID = 9_900, 3_900  # almost the limits of a tool's query and id
DOCUMENT = 20_000
MANY = 5_000  # events of a model
DONE = b"data: [DONE]"
ASK = "How long does tea take?"
# What a pattern or a parser may read again and again: blanks, brackets, marks, words of questions.
UNITS: tuple[str, ...] = tuple(
    json.loads(
        r"""[
    " ", "\n", "\t", "a", "a ", "a\n", "A", "1", "1,", "1 ", ".", "a.", ", ", "-", "- ",
    "- a\n", "_", "*", "**a ", "[", "]", "[a](", "![", "[a]: b\n", "{", "{a:", "{{", "(", "()",
    "<", "<a ", "<!--", "<p>", "<table><tr><td>", "<think>", "```a\n", "~~~", "`", "|", "> ",
    "# ", "=\n", "\\", "\"", "\\\"", "'", "/*", "//", "&", "&#", "$", "$CTX.", "@", ":", ": ",
    "a: ", "a: b\n", "#ref:a1b2 ", "#ref:", "http://a.b/", "www.", "a@b.c ", "and ", ", and ",
    "or ", "not ", "than 1 ", "in 2020 ", "between 1 and 2 ", "the ", "of the ", "last ",
    "how many ", "USER: ", "\nUSER:", "\u00e9", "\u3002", "\u7684", "\u0301", "\u200b",
    "\u202e", "\u00a0", "\u00df", "\u0130", "\r\n", "\u2028", "data: ", "\u001b[", "%", "%20",
    "+", "de la ", "\u0438 \u043d\u0430 ", "the \u0438 de \u306e. ", "\u306e", "\u0e17\u0e35\u0e48"
]"""
    )
)
PAGES = {"html": "text/html", "pdf": "application/pdf", "txt": "text/plain"}


def attack_all(campaign: Campaign, units: Sequence[str] = UNITS) -> None:
    """Run every attack with every unit."""
    documents(campaign, units)
    small_pieces(campaign)
    read_again(campaign)
    large(campaign)
    for unit in units:
        for attack in ATTACKS:
            attack(campaign, unit)


def files(campaign: Campaign, unit: str, endings: Sequence[str] = tuple(FORMATS)) -> None:
    """Files of messages, of each format."""
    text = f"Tea takes minutes. {pumped(unit, DOCUMENT)}"
    for ending in endings:
        data = base64.b64encode(FORMATS[ending](text)).decode()
        file = {"filename": f"a.{ending}", "file_data": f"data:application/{ending};base64,{data}"}
        content = [{"type": "text", "text": ASK}, {"type": "file", "file": file}]
        body = {"assistant": "open", "messages": [{"role": "user", "content": content}]}
        name = f"a file of {ending} {unit!r}"
        campaign.attack(name, "POST", "/api/turns?trace=1", json=body, headers=STREAMED)


def chats(campaign: Campaign, unit: str) -> None:
    """A chat whose question a hook asks, its answer, and a call that waits for an approval; the
    same answer again, and the chat as a document."""
    text = pumped(unit, QUESTION)
    asked = campaign.chat("hooked", [hooked("ask", unit, 60_000)], f"a hook asks {unit!r}")
    call = {"index": 0, "id": "c", "function": {"name": "said__say", "arguments": "{}"}}
    call["function"] = {"name": "said__say", "arguments": json.dumps({"text": text})}
    campaign.said.lines[:] = [_chunk({"tool_calls": [call]}, finish_reason="tool_calls"), DONE]
    waiting = campaign.chat("asks", [text], f"a call waits {unit!r}")
    for chat in (asked, waiting):
        for path, body in (
            ("decisions", {"approved": True, "reason": text[:9_000]}),
            ("regenerate", {}),
        ):
            name = f"{path} {unit!r}"
            path = f"/api/chats/{chat}/{path}"
            campaign.attack(name, "POST", path, json=body, headers=STREAMED)
        for path in ("export", "messages?view=blocks"):
            campaign.attack(f"{path} {unit!r}", "GET", f"/api/chats/{chat}/{path}")
    campaign.said.clear()


def responses(campaign: Campaign, unit: str) -> None:
    """A response, what continues it, and its text again."""
    text = pumped(unit, QUESTION)
    body = {"model": "next", "input": text}
    first = campaign.attack(f"a response {unit!r}", "POST", "/v1/responses", json=body)
    id = first.json().get("id", "x") if first is not None else "x"
    body["previous_response_id"] = id
    campaign.attack(f"a response continues {unit!r}", "POST", "/v1/responses", json=body)
    campaign.attack(f"a response is read {unit!r}", "GET", f"/v1/responses/{id}")


def questions(campaign: Campaign, unit: str) -> None:
    """Questions to each kind of source, and tasks of Open WebUI."""
    text = pumped(unit, QUESTION)
    for assistant in ("open", "rows", "model"):
        for question in (text, f"What are the hours{text}on monday?"):
            campaign.turn(assistant, question, f"question to {assistant} {unit!r}")
    for kind, more in (("kb", {"collections": ["notes"]}), ("db", {"models": ["row"]})):
        for name in ("query", "document", "filter"):
            value = {"k": text} if name == "filter" else text
            body = {"type": kind, "query": "tea", name: value, **more}
            body["assistant"] = "rows" if kind == "db" else "open"
            campaign.attack(f"search {kind} {name} {unit!r}", "POST", "/api/search", json=body)
    chat = {"role": "user", "content": f'### Task:\n"title"{text}'}
    campaign.attack(
        f"a task of Open WebUI {unit!r}",
        "POST",
        "/v1/chat/completions",
        json={"model": "open", "messages": [chat]},
        headers={"x-openwebui-user-id": "u"},
    )


def host_calls(campaign: Campaign, unit: str, calls: Sequence[str] = CALLS) -> None:
    """Each call of a hook."""
    for call in calls:
        campaign.turn("hooked", hooked(call, unit, ARGUMENT), f"{call} of a hook {unit!r}")


def answers(campaign: Campaign, unit: str, size: int = ANSWER) -> None:
    """Answers of a model: its text in one piece and in many, its thoughts, a tool, what is no
    event; and its text as blocks."""
    text = pumped(unit, size)
    calls = [{"index": 0, "id": "c", "function": {"name": "search", "arguments": text}}]
    pieces = [text[at : at + 200] for at in range(0, len(text) // 4, 200)]
    spoken: dict[str, list[dict[str, Any]]] = {
        "text": [{"content": text}],
        "pieces": [{"content": piece} for piece in pieces],
        "thoughts": [{"reasoning_content": text}],
        "tool": [{"tool_calls": calls}],
    }
    for name, said in spoken.items():
        lines = [_chunk(delta) for delta in said]
        lines.append(_chunk({}, finish_reason="stop"))
        campaign.said.lines[:] = [*lines, DONE]
        campaign.turn("model", ASK, f"{name} of a model {unit!r}")
        if name == "text":
            campaign.turn("next", ASK, f"{name} of a model to Next {unit!r}")
    campaign.said.lines[:] = [b"data: " + text.encode()]
    for assistant in ("model", "claude"):
        campaign.turn(assistant, ASK, f"no event of {assistant} {unit!r}")
    for kind, key in (("text", "text"), ("thinking", "thinking"), ("input_json", "partial_json")):
        campaign.said.lines[:] = _by_claude(kind, key, text)
        campaign.turn("claude", ASK, f"{kind} of claude {unit!r}")
    blocks(campaign, unit, size)


def blocks(campaign: Campaign, unit: str, largest: int = ANSWER) -> None:
    """Answers of a model for readers of blocks, also as rows of tables."""
    text = pumped(unit, largest)
    for columns, size in ((0, largest), (0, 90_000), (2, 40_000), (99, 3_000)):
        head = f"{'|a' * columns}|\n{'|-' * columns}|\n" if columns else ""
        campaign.said.lines[:] = [_chunk({"content": head + text[:size]}), DONE]
        campaign.attack(
            f"{size} of {unit!r} in {columns} columns as blocks",
            "POST",
            "/api/turns?view=blocks",
            json={"assistant": "model", "text": ASK},
            headers={"accept": "text/event-stream"},
        )
    campaign.said.lines.clear()


def small_pieces(campaign: Campaign) -> None:
    """Answers of a model in the smallest pieces, of each kind, for each kind of client; and hooks
    that call the host again and again."""
    call = {"index": 0, "function": {"arguments": "a"}}
    calls = {"index": 0, "id": "c", "function": {"name": "n", "arguments": "{}"}}
    spoken: dict[str, list[bytes]] = {
        "letters": [_chunk({"content": "a"})] * MANY,
        "thoughts": [_chunk({"reasoning_content": "a"})] * MANY,
        "arguments": [_chunk({"tool_calls": [call]})] * MANY,
        "calls": [
            _chunk({"tool_calls": [{**calls, "index": n, "id": f"c{n}"}]}) for n in range(2000)
        ],
        "empty": [_chunk({})] * MANY,
        "comments": [b":"] * MANY,
        "markers": [_chunk({"content": "#ref:a1b2 "})] * MANY,
    }
    chat = {"model": "model", "messages": [{"role": "user", "content": ASK}]}
    for name, lines in spoken.items():
        campaign.said.lines[:] = [*lines, _chunk({}, finish_reason="stop"), DONE]
        campaign.turn("model", ASK, f"{MANY} {name} of a model")
        for path, body in (
            ("/v1/chat/completions", chat),
            ("/v1/responses", {"model": "model", "input": ASK}),
            ("/api/assistants/model/ag-ui", {"threadId": "t", "runId": "r", **chat}),
        ):
            campaign.attack(f"{MANY} {name} of a model for {path}", "POST", path, json=body)
    campaign.said.lines.clear()
    for often in OFTEN:
        campaign.turn("hooked", hooked(often, "a", 200), f"{often} of a hook")


def read_again(campaign: Campaign) -> None:
    """Chats whose answers have thousands of markers or of blocks."""
    different = " ".join(f"#ref:a{at}b" for at in range(8_000))
    markers = "tea #ref:a1b2 " * 8_000
    for name, text in (("markers", markers), ("others", different), ("lists", "-\n" * 45_000)):
        campaign.said.lines[:] = [_chunk({"content": text}), DONE]
        chat = campaign.chat("model", ["What is word0?"] * 5, f"answers of {name}")
        for query in ("", "?view=blocks&limit=200", "/messages?limit=200", "/export"):
            campaign.attack(f"a chat of {name} {query}", "GET", f"/api/chats/{chat}{query}")
    campaign.said.clear()


def services(campaign: Campaign, unit: str) -> None:
    """Answers of a tool of an MCP server, of a web search, and pages."""
    said, text = campaign.said, pumped(unit, ANSWER)
    resource = {"uri": "a:b", "mimeType": "text/html", "text": text}
    numbers: dict[str, Any] = {"a": [1] * (FOUND // 3)}
    results: dict[str, dict[str, Any]] = {
        "numbers": {"content": [], "structuredContent": numbers},
        "text": {"content": [{"type": "text", "text": text}]},
        "structure": {"content": [], "structuredContent": {text[:1000]: [text]}},
        "resource": {"content": [{"type": "resource", "resource": resource}]},
        "error": {"content": [{"type": "text", "text": text}], "isError": True},
        "blocks": {"content": [{"type": "text", "text": unit}] * 5000},
    }
    call = {"index": 0, "id": "c", "function": {"name": "said__say", "arguments": "{}"}}
    said.lines[:] = [_chunk({"tool_calls": [call]}, finish_reason="tool_calls"), DONE]
    for name, result in results.items():
        said.result, said.progress = result, text[:LINE]
        campaign.turn("tools", ASK, f"{name} of a tool {unit!r}")
        campaign.turn("hooked", hooked("mcp", unit, 10), f"{name} of a tool to a hook {unit!r}")
    call["function"] = {"name": "search_documents", "arguments": json.dumps({"query": text[:ID]})}
    said.lines[:] = [_chunk({"tool_calls": [call]}, finish_reason="tool_calls"), DONE]
    campaign.turn("house", ASK, f"documents of a toolkit {unit!r}")
    said.clear()
    whole = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    for name, answer in (("answer", whole), ("error", {"error": {"message": text}})):
        said.whole = json.dumps(answer).encode()
        campaign.turn("model", ASK, f"a whole {name} of a model {unit!r}")
    said.clear()
    said.pages = {
        f"/page.{name}": (media_type, FORMATS[name](text[: ANSWER // 5]))
        for name, media_type in PAGES.items()
    }
    passage = pumped(unit, FOUND // 10)
    said.found = {
        "results": [
            {"url": f"{said.url}{path}", "title": passage[:LINE], "content": passage}
            for path in [*said.pages, *map(str, range(7))]
        ],
        "unresponsive_engines": [[passage[:LINE], passage[:LINE]]],
    }
    campaign.turn("web", ASK, f"web search {unit!r}")
    campaign.turn("web", text[:QUESTION], f"web search for {unit!r}")
    engines(campaign, unit)
    said.found = {"results": [], "unresponsive_engines": [[passage, passage]] * 5}
    campaign.turn("web", ASK, f"engines of a web search {unit!r}")


def engines(campaign: Campaign, unit: str) -> None:
    """Answers of services that search the web, with a text in each place of each; and errors."""
    said, escaped = campaign.said, len(json.dumps(unit)) - 2
    text = pumped(unit, FOUND_PART * len(unit) // escaped)
    short, entry = text[:2000], {"link": f"{said.url}/0"}
    for name in ("title", "date", "published_date"):
        entry[name] = short
    for name in ("content", "snippet", "answer", "description"):
        entry[name] = text
    found = [entry | dict.fromkeys(("url", "link"), f"{said.url}/{at}") for at in range(8)]
    lists = dict.fromkeys(("results", "organic", "organic_results"), found)
    boxes = ("answerBox", "answer_box", "knowledgeGraph", "knowledge_graph")
    told = {"search_metadata": {"status": short}, "search_information": {"k": text}}
    wrong = {"error": text, "detail": {"error": text}, "message": text, "results": text}
    for kind, said.found in (
        ("results", {**lists, **dict.fromkeys(boxes, entry)}),
        ("states", {**lists, **told}),
        ("errors", wrong),
    ):
        for engine in ENGINES:
            campaign.turn(f"web_{engine}", ASK, f"{kind} of {engine} {unit!r}")


def windows(campaign: Campaign, unit: str) -> None:
    """What an Ollama says about its model. It is asked once, so that each text needs a connector of
    its own: only the first texts have one."""
    if UNITS.index(unit) >= OLLAMAS:
        return
    text = pumped(unit, ANSWER // 4)
    shown = {"parameters": text, "model_info": {text[:LINE]: text, "a.context_length": text}}
    models = [{"id": "m", "owned_by": "library"}, {"id": text, "context_length": text}]
    campaign.said.bodies["/v1/models"] = json.dumps({"data": models}).encode()
    campaign.said.bodies["/api/show"] = json.dumps(shown).encode()
    campaign.said.lines[:] = [*[_chunk({"content": "a "})] * MANY, DONE]  # it is asked meanwhile
    long = [{"role": "user", "content": "word " * 20_000}] * 2
    messages = [long[0], {"role": "assistant", "content": "word"}, long[1]]
    body = {"assistant": f"ollama{UNITS.index(unit)}", "messages": messages}
    name = f"what Ollama says {unit!r}"
    campaign.attack(name, "POST", "/api/turns?trace=1", json=body, headers=STREAMED)
    campaign.said.clear()


def steps(campaign: Campaign, unit: str) -> None:
    """Answers of what does the steps of a search: of a model, or a tool; of the right form with a
    text in each place, with many entries, and of another form. Answers of a reranker and of a model
    of vectors."""
    said, text = campaign.said, pumped(unit, ANSWER // 5)
    for use in STEPS:
        for name, answer in (
            ("long", _like(use.schema, text, 2)),
            ("many", _like(use.schema, pumped(unit, 200), 900)),
            ("text", text),
        ):
            shown = answer if isinstance(answer, str) else json.dumps(answer)
            said.lines[:] = [_chunk({"content": shown}), _chunk({}, finish_reason="stop"), DONE]
            said.result = {"content": [{"type": "text", "text": shown}]}
            campaign.turn(f"used_{use.name}", "What is word0?", f"{name} {use.name} {unit!r}")
            said.clear()
    for name, answer in (
        ("long", _like(ENTITIES.schema, text, 2)),
        ("many", _like(ENTITIES.schema, pumped(unit, 200), 900)),
    ):
        said.lines[:] = [_chunk({"content": json.dumps(answer)}), DONE]
        upload(campaign, f"{name} entities {unit!r}", "graph", f"{name}: tea takes minutes.")
    said.clear()
    said.lines[:] = [_chunk({"content": json.dumps({"title": text, "query": text})}), DONE]
    for step in ("title", "rewrite"):
        campaign.chat(f"used_{step}", ["What is word0?", "And it?"], f"{step} in a chat {unit!r}")
    said.clear()
    rows = json.dumps([{"index": text, "embedding": [text], "relevance_score": text}])
    numbers = ",".join(["1.5"] * 100_000)
    for name, body in (
        ("text", text),
        ("rows", f'{{"data":{rows},"results":{rows}}}'),
        ("error", json.dumps({"error": {"message": text}})),
        ("numbers", f'{{"data":[{{"index":0,"embedding":[{numbers}]}}],"results":[{numbers}]}}'),
    ):
        said.bodies.update(dict.fromkeys(("/v1/embeddings", "/rerank"), body.encode()))
        for assistant in ("embedded", "ranked"):
            campaign.turn(assistant, "What is word0?", f"{name} for {assistant} {unit!r}")
    said.clear()


def _like(schema: Mapping[str, Any], text: str, entries: int) -> Any:
    """Return a value of a schema."""
    match schema["type"]:
        case "object":
            inner = schema.get("properties") or {"a": {"type": "string"}}
            return {key: _like(each, text, entries) for key, each in inner.items()}
        case "array":
            return [_like(schema["items"], text, entries)] * entries
        case "string":
            return text
        case "number":
            return 1
        case _:
            return True


def tools(campaign: Campaign, unit: str) -> None:
    """Arguments of tools that clients call: of the host, of a toolkit, of an MCP server."""
    text = pumped(unit, QUESTION)
    for assistant, name, arguments in (
        ("house", "search_documents", {"query": text}),
        ("house", "search_documents", {"query": text[:ID]}),
        ("tools", "said__say", {text[:1000]: text}),
    ):
        path = f"/api/tools/{name}?assistant={assistant}"
        campaign.attack(f"tool {name} {unit!r}", "POST", path, json=arguments)
    offered: tuple[tuple[str, dict[str, Any]], ...] = (
        ("search", {"query": text[:QUERY]}),
        ("fetch", {"id": text[:ID]}),
        ("batch_fetch", {"ids": [text[:ID]] * 20}),
        ("search_documents", {"query": text[:QUERY]}),
        ("ask", {"question": text[:QUERY], "assistant": "open"}),
    )
    for name, given in offered:
        params = {"name": name, "arguments": given}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        campaign.attack(f"/mcp {name} {unit!r}", "POST", "/mcp", json=message, headers=JSON)


def documents(campaign: Campaign, units: Sequence[str] = UNITS) -> None:
    """Documents of each format, two for each unit, added while the server reads the collection;
    each as a browser sees it, and a question that finds it."""
    folder = campaign.folder / "formats"
    folder.mkdir()
    names = list(notes(units))
    endings = list(FORMATS)
    for at, unit in enumerate(units):
        for ending in (endings[at % len(endings)], endings[(at + 5) % len(endings)]):
            name = f"{ending}{at}.{ending}"
            text = f"About {ending}{at}: tea takes minutes. {pumped(unit, DOCUMENT)}"
            (folder / name).write_bytes(FORMATS[ending](text))
            names.append(name)
    campaign.add(f"{len(names)} documents are added", folder)
    for name in names:
        path = f"/api/sources/kb/notes/{Path(name).name}"
        campaign.attack(f"page of {name}", "GET", path, headers={"accept": "text/html"})
        campaign.turn("open", f"What is {Path(name).stem}?", f"question that finds {name}")


def ordinary(campaign: Campaign) -> None:
    """What people ask."""
    for _ in range(3):
        for assistant in ("open", "rows"):
            campaign.turn(assistant, "How long does black tea take?", "ordinary")


def written(units: Sequence[str] = UNITS) -> dict[str, str]:
    """Return all files that the whole campaign adds to the app."""
    return {**notes(units), **wide()}


def notes(units: Sequence[str] = UNITS) -> dict[str, str]:
    """Return the first documents of the app, a connector for each text, and the summaries of its
    toolkit."""
    found = {
        f"notes/word{at}.md": f"About word{at}: tea takes minutes. {pumped(unit, DOCUMENT)}"
        for at, unit in enumerate(units)
    }
    summaries = [
        json.dumps({"id": at, "title": pumped(unit, 200), "content": pumped(unit, 8000)})
        for at, unit in enumerate(units)
    ]
    asking = {name: text for at in range(OLLAMAS) for name, text in ollama(at).items()}
    return {**found, **asking, "assistants/house/summaries.jsonl": "\n".join(summaries)}


def _chunk(delta: Mapping[str, Any], **more: Any) -> bytes:
    chunk = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, **more}]}
    return b"data: " + json.dumps(chunk).encode()


def _by_claude(kind: str, key: str, text: str) -> list[bytes]:
    """Return an answer of Anthropic's API with a text in one delta, as the lines of the service."""
    block = {"type": "tool_use" if kind == "input_json" else kind, "id": "c", "name": "search"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": text[:LINE]}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": f"{kind}_delta", key: text}},
        {"type": "message_delta", "delta": {"stop_reason": text[:LINE]}},
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}".encode() for one in events]


ATTACKS = (
    endpoints,
    questions,
    files,
    chats,
    responses,
    tools,
    host_calls,
    answers,
    services,
    windows,
    steps,
)


def main(units: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, campaign(Path(folder), written(units)) as made:
        ordinary(made)
        floor = made.longest()[0]
        made.stops.clear()
        attack_all(made, units)
        longest = made.longest()
        for stop in longest[:10]:
            print(f"{stop.computing:.3f} s of {stop.waited:.3f} s: {stop.name}", file=sys.stderr)
        figure(
            f"the longest stop of the server in {len(longest)} attacks",
            1000 * min(longest[0].computing, longest[0].waited),
            "ms",
            1000 * min(floor.computing, floor.waited),
            "with ordinary questions",
        )


if __name__ == "__main__":
    main(sys.argv[1:] or UNITS)

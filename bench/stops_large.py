"""The attacks of `bench.stops` that are large rather than odd: what a stranger sends at most, and
what they get back of it."""

from __future__ import annotations

import base64
import json
import random

from bench.stops_endpoints import FORM, pumped
from bench.stops_served import STREAMED, Campaign

TURNS = 30  # of a chat: what one person may ask in a minute
LONG = 240_000  # characters of a question, almost the limit
FILE = 5_500_000  # bytes of a file of a message, almost its limit when it is encoded
UPLOAD = 8_000_000  # bytes of a document
ROWS, COLUMNS = 10_000, 30  # of a table, whose rows are exported as far as they may be
WORDS = ("tea", "takes", "minutes", "and", "water", "boils", "green", "the", "of", "leaves.", "\n")


def large(campaign: Campaign) -> None:
    """Long chats, files and documents of the largest size, and all rows of a table."""
    chats(campaign)
    attachments(campaign)
    documents(campaign)
    tables(campaign)


def chats(campaign: Campaign) -> None:
    """A chat of long questions, and what reads it whole; a response that continues another."""
    text = written(LONG)
    chat = campaign.chat("next", [text] * TURNS, "a chat of long questions")
    path = f"/api/chats/{chat}"
    for name in ("", "?view=blocks", "/messages?limit=200", "/export"):
        campaign.attack(f"a long chat {name}", "GET", f"{path}{name}")
    body = {"text": "And now?"}
    campaign.attack("a long chat goes on", "POST", f"{path}/turns", json=body, headers=STREAMED)
    campaign.attack("a long chat again", "POST", f"{path}/regenerate", json={}, headers=STREAMED)
    before = None
    for _ in range(TURNS // 3):
        asked = {"model": "next", "input": text, "previous_response_id": before}
        answer = campaign.attack("a long response goes on", "POST", "/v1/responses", json=asked)
        before = answer.json().get("id") if answer is not None else None
    campaign.attack("a long response", "GET", f"/v1/responses/{before}")
    campaign.attack("chats", "GET", "/api/chats?q=e&limit=200")


def attachments(campaign: Campaign) -> None:
    """Files and pictures of the largest size."""
    noise = random.Random(1).randbytes(FILE)
    kinds = {"txt": written(FILE).encode(), "pdf": noise, "png": b"\x89PNG\r\n\x1a\n" + noise}
    for kind, data in kinds.items():
        url = f"data:application/{kind};base64,{base64.b64encode(data).decode()}"
        file = {"type": "file", "file": {"filename": f"a.{kind}", "file_data": url}}
        if kind == "png":
            file = {"type": "image_url", "image_url": {"url": url.replace("application", "image")}}
        content = [{"type": "text", "text": "What is it?"}, file, file]
        asked = {"messages": [{"role": "user", "content": content}]}
        for path, body in (
            ("/api/turns", {"assistant": "open", **asked}),
            ("/api/turns", {"assistant": "model", **asked}),
            ("/v1/chat/completions", {"model": "open", **asked}),
        ):
            campaign.attack(f"two files of {kind} for {path}", "POST", path, json=body)
        chat = campaign.client.post("/api/chats", json={"assistant": "open"}).json()["id"]
        for text in ("What is it?", "And then?"):
            parts = [{"type": "text", "text": text}, file]
            path = f"/api/chats/{chat}/turns"
            campaign.attack(f"a file of {kind} in a chat", "POST", path, json={"content": parts})
        for path in ("", "/export"):
            campaign.attack(f"a chat with a file of {kind}", "GET", f"/api/chats/{chat}{path}")


def documents(campaign: Campaign) -> None:
    """Documents of the largest size, in few and in many passages, and what shows them."""
    texts = {"long.txt": written(UPLOAD), "rows.md": pumped("| a | b |\n", UPLOAD // 4)}
    for name, text in texts.items():
        head = f'--x\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + text.encode() + b"\r\n--x--\r\n"
        path = "/api/kb/notes/documents"
        campaign.attack(f"{name} is added", "POST", path, content=body, headers=FORM)
        for query in ("", "?view=blocks"):
            path = f"/api/sources/kb/notes/{name}{query}"
            campaign.attack(f"{name} {query}", "GET", path)
            shown = {"accept": "text/html"}
            campaign.attack(f"page of {name}", "GET", path, headers=shown)
        ask = {"query": "water", "expect": "x", "limit": 100}
        campaign.attack(f"search beside {name}", "POST", "/api/kb/notes/search", json=ask)
        campaign.turn("open", "How long does water boil?", f"question beside {name}")
        campaign.attack(f"{name} is removed", "DELETE", f"/api/kb/notes/documents/{name}")


def tables(campaign: Campaign) -> None:
    """All rows of a wide table."""
    for query in ("all rows", "wide rows sorted by a1"):
        body = {"type": "db", "query": query, "models": ["wide"], "assistant": "wide"}
        for accept in ("text/csv", "application/json"):
            name = f"{query} as {accept}"
            headers = {"accept": accept}
            campaign.attack(name, "POST", "/api/search", json=body, headers=headers)
        campaign.turn("wide", query, f"a question for {query}")


def written(size: int) -> str:
    """Return words in sentences, `size` characters."""
    return " ".join(random.Random(2).choices(WORDS, k=size // 5))[:size]


def wide() -> dict[str, str]:
    """Return the files of a model of a large table, and of the assistant that reads it."""
    names = [f"a{n}" for n in range(COLUMNS)]
    values = [{"id": n, **dict.fromkeys(names, f"value {n}")} for n in range(ROWS)]
    columns = [{"name": "id", "type": "ID"}, *({"name": n, "type": "string"} for n in names)]
    model = {"name": "Wide", "table": {"name": "wide"}, "columns": columns, "values": values}
    package = {
        "name": "Wide",
        "connector": "extractive",
        "public": True,
        "db": {"models": ["wide"]},
        "search": {"db": True},
    }
    return {
        "models/wide.mod.yao": json.dumps(model),
        "assistants/wide/package.yao": json.dumps(package),
    }

"""What a tool reaches through its scope: collections with owners, whole texts, models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from groundhook import open_host
from groundhook.plugins import CollectionDocument, CollectionQuery, Message, Tool, ToolScope
from tests.conftest import MakeApp
from tests.loopback.chat import answer
from tests.loopback.embeddings import openai_answer
from tests.loopback.server import Hang, Json, Loopback, Reads, Sse, serving
from tests.parts.openai_asking import PATH

EXACT = {
    "blanks": "  \n\n\tPears ripen.\n\n\n",
    "lines": "Pears\r\nripen\rin autumn.\n",
    "code": "```\nx\n\n\n\n\ty\n```\n",
    "front": "---\ntitle: Pears\n---\nThey ripen.",
    "nfd": "cafe\u0301 \u0000 \u2028 pears",
    "long": "\n\n".join(f"Paragraph {number} is about pears.   " for number in range(400)) + "\n",
    "table": "| a | b |\n|---|---|\n" + "| pear | plum |\n" * 200,
}


class Nothing(BaseModel):
    pass


def app_with_notes(make_app: MakeApp, **keys: Any) -> Any:
    spec = {"embedding": {"provider": "hash"}, **keys}
    return make_app({"assistants/a/package.yao": "{}", "kb/notes.kb.yao": json.dumps(spec)})


def tool(run: Any) -> Tool:
    return Tool(name="work", description="Works.", arguments=Nothing, run=run, reads_only=False)


async def test_a_document_comes_back_letter_for_letter(make_app: MakeApp) -> None:
    async def work(_: Nothing, scope: ToolScope) -> Any:
        documents = [CollectionDocument(id=id, text=text) for id, text in EXACT.items()]
        report = await scope.collections.put("notes", documents)
        assert (report.added, report.failed) == (len(EXACT), {})
        again = await scope.collections.put("notes", documents)
        assert again.unchanged == len(EXACT)
        return {
            id: one.text for id, one in (await scope.collections.get("notes", [*EXACT])).items()
        }

    async with open_host(app_with_notes(make_app), environment={}, tools=[tool(work)]) as host:
        assert (await host.tool("work")).result == EXACT


async def test_what_another_program_put_in_its_place_is_returned(make_app: MakeApp) -> None:
    async def work(_: Nothing, scope: ToolScope) -> Any:
        if not await scope.collections.get("notes", ["1"]):
            await scope.collections.put("notes", [CollectionDocument(id="1", text="Pears.\n\n")])
        return {id: one.text for id, one in (await scope.collections.get("notes", ["1"])).items()}

    app = app_with_notes(make_app)
    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        assert (await host.tool("work")).result == {"1": "Pears.\n\n"}
        feed = app / "feed.jsonl"
        feed.write_text('{"id": "1", "content": "Plums."}\n', encoding="utf-8")
        with feed.open("rb") as stream:
            await host.kb.add("notes", feed=stream)
        assert (await host.tool("work")).result == {"1": "Plums."}


async def test_users_with_one_id_in_two_tenants_stay_apart(make_app: MakeApp) -> None:
    async def work(_: Nothing, scope: ToolScope) -> Any:
        notes, who = scope.collections, scope.identity
        document = CollectionDocument(id="1", text=f"Note of {who.tenant_id} {who.user_id}.")
        await notes.put("notes", [document], owner="user")
        query = CollectionQuery(collection="notes", text="note", threshold=0, owner="user")
        [found] = await notes.find([query])
        return [
            [match.passage for match in found.matches],
            [one.text for one in (await notes.get("notes", ["1"], owner="user")).values()],
            await notes.count("notes", owner="user"),
        ]

    app = app_with_notes(make_app, tenant_field="owner")
    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        for tenant, user in (("t1", "u"), ("t2", "u"), ("t1", "v")):
            note = f"Note of {tenant} {user}."
            identity = {"tenant_id": tenant, "user_id": user}
            outcome = await host.tool("work", identity=identity)
            assert outcome.result == [[note], [note], 1], outcome.error
        refused = await host.tool("work", identity={"tenant_id": "t1"})
    assert refused.code == "not_permitted"
    assert "separates the documents of each user, and the request names none" in str(refused.error)


async def test_pages_are_parts_of_one_order_and_the_total_is_the_same_on_each(
    make_app: MakeApp,
) -> None:
    async def work(_: Nothing, scope: ToolScope) -> Any:
        documents = [
            CollectionDocument(id=f"{n:02}", title=f"T{n}", text=f"Pears {n}.", fields={"year": n})
            for n in range(25)
        ]
        await scope.collections.put("notes", documents)
        pages: dict[str, list[str]] = {}
        for text, order_by in (("pears", "id"), ("", "-year")):
            for offset in (0, 10, 20):
                query = CollectionQuery(
                    collection="notes",
                    text=text,
                    offset=offset,
                    threshold=0,
                    order_by=order_by,
                    filter={"year": {"gte": 2}},
                )
                [found] = await scope.collections.find([query])
                assert (found.total, found.total_is) == (23, "exact")
                pages.setdefault(text, []).extend(match.id for match in found.matches)
        assert sorted(pages["pears"]) == [f"{n:02}" for n in range(2, 25)]
        assert pages[""] == [f"{n:02}" for n in range(24, 1, -1)]
        high = CollectionQuery(collection="notes", text="quantum chromodynamics", threshold=1)
        [nothing] = await scope.collections.find([high])
        return [len(nothing.matches), nothing.below]

    app = app_with_notes(make_app, fields={"year": "integer"})
    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        outcome = await host.tool("work")
    assert outcome.result == [0, 25], outcome.error


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as server:
        yield server


async def test_questions_to_several_collections_of_one_model_are_embedded_in_one_request(
    make_app: MakeApp, server: Loopback
) -> None:
    embedding = {"provider": "service", "model": "text-embedding-3-small", "dimensions": 512}
    service = {"type": "openai", "host": f"{server.url}/v1", "key": "none"}
    app = make_app(
        {
            "agent/agent.yml": json.dumps({"embedders": {"service": service}}),
            **{
                f"kb/{name}.kb.yao": json.dumps({"embedding": embedding})
                for name in ("one", "two", "three")
            },
        }
    )
    server.on("/v1/embeddings", Reads(openai_answer))

    async def work(_: Nothing, scope: ToolScope) -> Any:
        names = ("one", "two", "three")
        for name in names:
            document = CollectionDocument(id=name, text=f"Pears of {name}.")
            await scope.collections.put(name, [document])
        before = len(server.requests)
        queries = [
            CollectionQuery(collection=name, text=text, threshold=0)
            for name in names
            for text in ("pears", "plums")
        ]
        answers = await scope.collections.find(queries)
        sent = [each.json["input"] for each in server.requests[before:]]
        return [[match.id for match in answer.matches] for answer in answers], sent

    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        outcome = await host.tool("work")
    assert outcome.error is None, outcome.error
    found, sent = outcome.result
    assert found == [["one"], ["one"], ["two"], ["two"], ["three"], ["three"]]
    assert sent == [["pears", "plums"]]


async def test_a_model_of_the_assistants_own_folder_is_asked_for_json(
    make_app: MakeApp, server: Loopback
) -> None:
    connector = {
        "type": "openai",
        "options": {"model": "m", "host": f"{server.url}/v1", "key": "none"},
    }
    app = make_app(
        {
            "assistants/a/package.yao": '{"connector": "ranker"}',
            "assistants/a/connectors/ranker.conn.yao": json.dumps(connector),
        }
    )
    refusal = Json({"error": {"message": "Only the default (1) temperature is supported"}}, 400)
    server.on(PATH, refusal, Sse(answer('Sure: {"documents": [{"id": 1}]}')))

    async def work(_: Nothing, scope: ToolScope) -> Any:
        replies = [
            await scope.models.complete(
                "ranker",
                [Message(role="user", content="Rank.")],
                answer="json",
                temperature=0.3,
            )
            for _ in range(2)
        ]
        return [reply.data for reply in replies]

    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        outcome = await host.tool("work", assistant="a")
        unknown = await host.tool("work")
        with anyio.fail_after(60):
            async with host.stream("a", "Hello?") as events:
                end = [event async for event in events][-1]
    assert outcome.result == [{"documents": [{"id": 1}]}] * 2, outcome.error
    sent = [request.json for request in server.requests]
    assert [each.get("temperature") for each in sent] == [0.3, None, None, None]
    assert [each.get("response_format") for each in sent[:3]] == [{"type": "json_object"}] * 3
    assert "no connector 'ranker'" in str(unknown.error)
    assert end.type == "stream_end"
    assert end.content.startswith("Sure:")


async def test_cancelling_a_turn_ends_the_requests_of_its_tools(
    make_app: MakeApp, server: Loopback
) -> None:
    connector = {
        "type": "openai",
        "options": {"model": "m", "host": f"{server.url}/v1", "key": "none"},
    }
    app = make_app(
        {
            "assistants/a/package.yao": "{}",
            "connectors/slow.conn.yao": json.dumps(connector),
        }
    )
    stopped = anyio.Event()

    async def work(_: Nothing, scope: ToolScope) -> Any:
        try:
            await scope.models.complete("slow", [Message(role="user", content="Hi.")])
        finally:
            stopped.set()

    server.on(PATH, Hang())
    async with open_host(app, environment={}, tools=[tool(work)]) as host:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.tool, "work")
                await server.until_requested()
                tasks.cancel_scope.cancel()
        assert stopped.is_set()
        assert await anyio.to_thread.run_sync(server.requests[0].left.wait, 60)

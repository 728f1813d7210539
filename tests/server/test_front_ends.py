"""Front ends over HTTP: the AI SDK's chats are kept, resumed and stopped; runs of AG-UI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.server.conftest import OTHER, READER, Serve, Served

CHAT = "/api/assistants/tea/chat"


def message(role: str, text: str, id: str = "u1") -> dict[str, Any]:
    return {"id": id, "role": role, "parts": [{"type": "text", "text": text}]}


def sent(answer: httpx.Response) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    assert answer.status_code == 200, answer.text
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


def text_of(chunks: Sequence[dict[str, Any]]) -> str:
    return "".join(each["delta"] for each in chunks if each["type"] == "text-delta")


def id_of(chunks: Sequence[dict[str, Any]]) -> str:
    return str(chunks[0]["messageId"])


def scripted(*entries: Any) -> dict[str, str]:
    connector = {"label": "Script", "type": "scripted", "options": {"script": [*entries]}}
    return {
        "connectors/script.conn.yao": json.dumps(connector),
        "assistants/plain/package.yao": '{ "name": "Plain", "connector": "script" }',
    }


def test_a_stream_has_the_headers_and_chunks_of_the_sdk(served: Served) -> None:
    with served.client() as client:
        body = {"id": "page-chat", "messages": [message("user", "all teas")]}
        answer = client.post(CHAT, json=body)
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text.endswith("data: [DONE]\n\n")
        chunks = sent(answer)
        assert text_of(chunks) == "Two teas [1], ☕ and [2], [1]."
        sources = [each for each in chunks if each["type"] == "source-url"]
        assert [source["title"] for source in sources] == ["Assam", "Sencha"]
        assert client.get(sources[0]["url"]).status_code == 200
        linked = sent(client.post(CHAT, params={"citations": "links"}, json=body | {"id": ""}))
        assert "[[1]](http" in text_of(linked)
        assert "messageId" not in linked[0]
        shown = client.get("/api/chats/page-chat").json()["messages"]
        assert [each["role"] for each in shown] == ["user", "assistant"]
        assert shown[1]["id"] == id_of(chunks)
        assert client.delete("/api/chats/page-chat").status_code == 204


def test_the_store_has_the_history_and_a_page_edits_and_regenerates_in_it(serve: Serve) -> None:
    files = scripted(
        "One.", {"text": "Two.", "expect": "One."}, "Another two.", "Edited two.", "Edited one."
    )
    path = "/api/assistants/plain/chat"
    with serve(files) as served, served.client() as client:

        def ask(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
            return sent(client.post(path, json={"id": "c1", "messages": messages, **more}))

        def branch() -> list[str]:
            return [
                each["answer"]["content"] if each["answer"] else each["content"]
                for each in client.get("/api/chats/c1").json()["messages"]
            ]

        first = ask(message("user", "1?"))
        # What the page says that the assistant said is its own memory, not the chat's.
        history = [message("user", "1?"), message("assistant", "I lied", id_of(first))]
        second = ask(*history, message("user", "2?"))
        assert branch() == ["1?", "One.", "2?", "Two."]
        again = {"trigger": "regenerate-message", "messageId": id_of(second)}
        ask(*history, message("user", "2?"), **again)
        assert branch() == ["1?", "One.", "2?", "Another two."]
        ask(*history, message("user", "2, edited?"), messageId="u1")
        assert branch() == ["1?", "One.", "2, edited?", "Edited two."]
        ask(message("user", "1, edited?"), messageId="u1")
        assert branch() == ["1, edited?", "Edited one."]


def test_a_turn_goes_on_when_its_page_leaves_and_is_resumed_and_stopped_by_its_owner(
    serve: Serve,
) -> None:
    path = "/api/assistants/late/chat"
    with serve() as served, served.client() as client, served.client(OTHER) as other:
        assert client.get(f"{path}/c1/stream").status_code == 204  # no such chat yet
        body = {"id": "c1", "messages": [message("user", "?")]}
        with client.stream("POST", path, json=body) as answer:
            first = next(line for line in answer.iter_lines() if line.startswith("data: "))
        assert other.get(f"{path}/c1/stream").status_code == 204
        assert other.post(f"{path}/c1/stop").json() == {"stopped": False}
        busy = client.post(path, json=body)
        assert (busy.status_code, busy.json()["code"]) == (409, "chat_busy")
        with client.stream("GET", f"{path}/c1/stream") as resumed:
            lines = resumed.iter_lines()
            assert next(line for line in lines if line.startswith("data: ")) == first
            stopped = client.post(f"{path}/c1/stop")
            assert (stopped.status_code, stopped.json()["stopped"]) == (202, True)
            rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert rest[-1]["type"] == "abort"
        assert client.get(f"{path}/c1/stream").status_code == 204
        assert client.post(f"{path}/c1/stop").status_code == 200
        [shown] = client.get("/api/chats/c1").json()["messages"][1:]
        assert shown["answer"]["errors"][0]["code"] == "stopped"


CANCEL = {"tool_calls": [{"name": "cancel", "arguments": {"order": 3}}]}
TOOL = """
export const schemas = { cancel: {
  description: "Cancel an order", confirm: true,
  type: "object", properties: { order: { type: "integer" } }, required: ["order"] } };
export function cancel({ order }: { order: number }) { return "cancelled " + order; }
"""


def decided(id: str, call: str, *, approved: bool) -> dict[str, Any]:
    """The answer as a page sends it back, when its user has decided."""
    part = {
        "type": "dynamic-tool",
        "toolCallId": call,
        "toolName": "cancel",
        "state": "approval-responded",
        "approval": {"id": call, "approved": approved, "reason": "why not"},
    }
    return {"id": id, "role": "assistant", "parts": [{"type": "step-start"}, part]}


def test_a_page_approves_a_call_once_and_goes_on_behind_its_answer(serve: Serve) -> None:
    path = "/api/assistants/plain/chat"
    files = scripted(CANCEL, CANCEL, "Both done.", {"text": "Yes.", "expect": "Both done."})
    with (
        serve({**files, "assistants/plain/src/tools.ts": TOOL}) as served,
        served.client() as client,
        served.client(OTHER) as other,
    ):
        question = message("user", "Cancel 3 twice")
        first = sent(client.post(path, json={"id": "c1", "messages": [question]}))
        [request] = [each for each in first if each["type"] == "tool-approval-request"]
        assert first[-1]["finishReason"] == "tool-calls"
        answer = decided(id_of(first), request["approvalId"], approved=True)
        body = {"id": "c1", "messages": [question, answer]}
        second = sent(client.post(path, json=body))
        assert "messageId" not in second[0]  # the page's message goes on
        [result] = [each for each in second if each["type"] == "tool-output-available"]
        assert (result["toolCallId"], result["output"]) == (request["toolCallId"], "cancelled 3")
        assert second[2]["type"] == "tool-output-available"  # the page has its input
        [again] = [each for each in second if each["type"] == "tool-approval-request"]
        assert other.post(path, json=body).status_code in (400, 404)
        answer["parts"][1]["state"] = "output-available"
        answer["parts"] += decided("", again["approvalId"], approved=False)["parts"]
        third = sent(client.post(path, json=body))
        assert [each["toolCallId"] for each in third if each["type"] == "tool-output-denied"] == [
            again["toolCallId"]
        ]
        assert text_of(third) == "Both done."
        twice = client.post(path, json=body)
        assert (twice.status_code, twice.json()["code"]) == (409, "already_decided")
        answer["parts"].append({"type": "text", "text": "Both done."})
        last = message("user", "Really?")
        fourth = sent(client.post(path, json={"id": "c1", "messages": [question, answer, last]}))
        assert text_of(fourth) == "Yes."
        assert len(client.get("/api/chats/c1").json()["messages"]) == 8


YEAR = """
function Create(ctx) {
  ctx.memory.user.Incr("private");
  return { answer: `Of ${ctx.Ask("Of which year?", ["2023", "2024"])}.` };
}"""


def test_a_page_answers_a_question_of_a_hook_and_does_not_send_the_answer_again(
    serve: Serve,
) -> None:
    path = "/api/assistants/plain/chat"
    with (
        serve({**scripted(), "assistants/plain/index.ts": YEAR}) as served,
        served.client() as client,
    ):
        question = message("user", "How many?")
        first = sent(client.post(path, json={"id": "c1", "messages": [question]}))
        assert text_of(first) == "Of which year?"
        [input] = [each for each in first if each["type"] == "tool-input-available"]
        assert input["input"] == {"question": "Of which year?", "choices": ["2023", "2024"]}
        answer = decided(id_of(first), input["toolCallId"], approved=True)
        answer["parts"][1]["approval"]["reason"] = "2024"
        second = sent(client.post(path, json={"id": "c1", "messages": [question, answer]}))
        assert text_of(second) == "Of 2024."
        [over] = [each for each in second if each["type"] == "tool-output-available"]
        assert over["toolCallId"] == input["toolCallId"]


def test_decisions_over_the_api_are_made_once_and_by_the_owner(serve: Serve) -> None:
    files = scripted(CANCEL, "Done.", CANCEL)
    with (
        serve({**files, "assistants/plain/src/tools.ts": TOOL}) as served,
        served.client(accept="application/json") as client,
        served.client(OTHER, accept="application/json") as other,
    ):
        chat = client.post("/api/chats", json={"assistant": "plain"}).json()["id"]
        asked = client.post(f"/api/chats/{chat}/turns", json={"text": "Cancel 3"}).json()
        assert asked["finish_reason"] == "approval_required"
        [waiting] = asked["pending"]
        path = f"/api/chats/{chat}/decisions"
        assert other.post(path, json={"approved": True}).status_code == 404
        wrongs: list[dict[str, Any]] = [{}, {"calls": {"x": True}}, {"calls": {}}]
        for wrong in [*wrongs, {"approved": True, "calls": {}}]:
            assert client.post(path, json=wrong).status_code == 400, wrong
        lost = client.post(path, json={"approved": True, "message_id": "m_none"})
        assert lost.status_code == 404
        body = {"calls": {waiting["call_id"]: True}, "message_id": asked["message_id"]}
        key = {"idempotency-key": "k1"}
        answered = client.post(path, json=body, headers=key)
        assert answered.json()["content"] == "Done."
        repeated = client.post(path, json=body, headers=key).json()
        assert repeated["turn_id"] == answered.json()["turn_id"]
        for again in (body, {"approved": True}):
            twice = client.post(path, json=again)
            assert (twice.status_code, twice.json()["code"]) == (409, "already_decided")
        [_, first, decision, _] = client.get(f"/api/chats/{chat}").json()["messages"]
        assert first["answer"]["pending"][0]["name"] == "cancel"
        assert decision["decisions"][0]["approved"] is True
        markdown = client.get(f"/api/chats/{chat}/export?format=markdown").text
        assert "Approved: cancel" in markdown

        # Where nobody can be asked, the model is told.
        turn = client.post("/api/turns", json={"assistant": "plain", "text": "Cancel 3"}).json()
        assert turn["pending"] == []


def test_the_next_message_of_a_chat_answers_the_question_of_a_hook(serve: Serve) -> None:
    files = {**scripted(), "assistants/plain/index.ts": YEAR}
    with serve(files) as served, served.client(accept="application/json") as client:
        chat = client.post("/api/chats", json={"assistant": "plain"}).json()["id"]
        path = f"/api/chats/{chat}/turns"
        for said, answer in (
            ("How many?", "Of which year?"),
            ("Of the last one", "Of which year?"),  # none of the choices
            ("2024", "Of 2024."),
            ("2023", "Of which year?"),
        ):
            assert client.post(path, json={"text": said}).json()["content"] == answer


def test_a_call_that_the_user_refuses_is_no_failed_tool(serve: Serve) -> None:
    files = {**scripted(CANCEL, "As you wish."), "assistants/plain/src/tools.ts": TOOL}
    with serve(files) as served, served.client(OTHER, accept="application/json") as client:
        chat = client.post("/api/chats", json={"assistant": "plain"}).json()["id"]
        client.post(f"/api/chats/{chat}/turns", json={"text": "Cancel 3"})
        refused = {"approved": False, "reason": "a secret of mine"}
        answer = client.post(f"/api/chats/{chat}/decisions", json=refused).json()
        assert answer["content"] == "As you wish."
        log = client.get(f"/api/turns/{answer['turn_id']}/events", headers={"accept": "*/*"}).text
    [result] = [json.loads(line[6:]) for line in log.splitlines() if '"type":"tool_result"' in line]
    assert result["error"] == "the user refused this call"
    assert "the tool failed" not in log


def test_a_caller_without_chats_is_answered_from_the_pages_own_messages(served: Served) -> None:
    with served.client(READER) as client:
        history = [message("user", "1?"), message("assistant", ""), message("user", "all teas")]
        chunks = sent(client.post(CHAT, json={"id": "c1", "messages": history}))
        assert "messageId" not in chunks[0]
        assert text_of(chunks).startswith("Two teas")
        assert client.get(f"{CHAT}/c1/stream").status_code == 204


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"messages": []}, "messages: the last one should be a question"),
        ({"messages": [message("assistant", "x")]}, "messages: the last one"),
        ({"messages": [{"role": "user", "content": "x"}]}, "messages[0].parts"),
        ({"messages": [message("tool", "x")]}, "messages[0].role"),
        ({"messages": [{"role": "user", "parts": [{"type": "text"}]}]}, "parts[0].text"),
        ({"messages": [{"role": "user", "parts": [{"type": "file"}]}]}, "parts[0].url"),
        ({"trigger": "resume"}, "trigger"),
        ({"mesages": []}, "mesages"),
        ({"trigger": "regenerate-message", "messages": [], "id": "none"}, "messages"),
    ],
)
def test_what_is_no_request_of_the_sdk_says_why(
    served: Served, change: dict[str, Any], about: str
) -> None:
    body = {"id": "", "messages": [message("user", "?")], **change}
    with served.client() as client:
        answer = client.post(CHAT, json=body)
    assert answer.status_code == 400, answer.text
    assert about in answer.json()["detail"]


def run_input(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"threadId": "th", "runId": "r1", "state": {}, "tools": [], "context": []}
    return {**base, "messages": list(messages), "forwardedProps": {}, **more}


def user(text: Any) -> dict[str, Any]:
    return {"id": "u1", "role": "user", "content": text}


def test_a_run_of_ag_ui_is_answered_with_sources(served: Served) -> None:
    with served.client() as client:
        events = sent(client.post("/api/assistants/tea/ag-ui", json=run_input(user("all teas"))))
    assert (events[0]["type"], events[0]["threadId"]) == ("RUN_STARTED", "th")
    text = "".join(each["delta"] for each in events if each["type"] == "TEXT_MESSAGE_CONTENT")
    assert text == "Two teas [1], ☕ and [2], [1]."
    names = [each["name"] for each in events if each["type"] == "CUSTOM"]
    assert names.count("groundhook.source") == 2
    assert events[-1]["outcome"] == {"type": "success"}


PICK = {"name": "pick", "description": "Pick a colour", "parameters": {"type": "object"}}


def test_a_tool_of_the_page_is_called_and_its_result_continues_the_run(serve: Serve) -> None:
    call = {"tool_calls": [{"name": "pick", "arguments": {"of": "tea"}}]}
    files = scripted(call, {"text": "Green it is.", "expect": "green"})
    path = "/api/assistants/plain/ag-ui"
    with serve(files) as served, served.client() as client:
        first = sent(client.post(path, json=run_input(user("?"), tools=[PICK])))
        started = next(each for each in first if each["type"] == "TOOL_CALL_START")
        id = started["toolCallId"]
        function = {"name": "pick", "arguments": "{}"}
        called = [{"id": id, "type": "function", "function": function}]
        own = {"id": "own", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        answered = {"id": "a1", "role": "assistant", "toolCalls": [own, *called]}
        result = {"id": "t1", "role": "tool", "toolCallId": id, "content": "green"}
        found = {
            "id": "own-result",
            "role": "tool",
            "toolCallId": "own",
            "content": "of the assistant",
        }
        history = [user("?"), answered, found, result]
        last = sent(client.post(path, json=run_input(*history, tools=[PICK])))
        assert last[-1]["outcome"] == {"type": "success"}
        lost = client.post(path, json=run_input(user("?"), result, tools=[PICK]))
        assert lost.status_code == 400
        assert "messages[1].toolCallId: the answer before it" in lost.json()["detail"]
        for tools in ([PICK], []):
            half = client.post(path, json=run_input(*history[:3], user("?"), tools=tools))
            assert half.status_code == 400
            assert half.json()["detail"].startswith("messages[1].toolCalls[1]: its result does not")


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"messages": []}, "messages"),
        ({"threadId": ""}, "threadId"),
        ({"context": [{"value": 1}]}, "context[0].value"),
        ({"messages": [user([{"type": "audio"}])]}, "messages[0].content[0].type"),
        ({"messages": [user([{"type": "image"}])]}, "source"),
        ({"messages": [{"role": "assistant", "toolCalls": ["x"]}]}, "messages"),
        ({"tools": [{"description": "x"}]}, "tools[0].name"),
        ({"forwardedProps": {"search": "maybe"}}, "forwardedProps.search"),
    ],
)
def test_what_is_no_run_of_ag_ui_says_why(
    served: Served, change: dict[str, Any], about: str
) -> None:
    with served.client() as client:
        answer = client.post("/api/assistants/tea/ag-ui", json={**run_input(user("?")), **change})
    assert answer.status_code == 400, answer.text
    assert about in answer.json()["detail"]

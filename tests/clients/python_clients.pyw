"""What a Python program does with a client: `python python_clients.pyw NAME ADDRESS KEY LINKS` prints
what it saw as JSON. The key LINKS has citations as links. It runs in an environment of its own, with requirements.txt beside it."""

# Not a `.py`: its clients are not installed where the product is checked.
from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from pydantic import BaseModel

name, address, key, links_key = sys.argv[1:]
V1 = f"{address}/v1"
os.environ |= {  # noqa: TID251 - a process of its own
    "OPENAI_BASE_URL": V1,
    "OPENAI_API_KEY": key,
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
QUESTION = "all teas"


class Teas(BaseModel):
    teas: list[str]


def langchain() -> Any:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def pick(of: str) -> str:
        """Pick."""
        return "green"

    plain = ChatOpenAI(model="tea")
    responses = ChatOpenAI(model="tea", use_responses_api=True).invoke(QUESTION)
    annotations = [
        note["title"] for part in responses.content for note in part.get("annotations", [])
    ]
    form = ChatOpenAI(model="json").with_structured_output(Teas).invoke(QUESTION)
    called = ChatOpenAI(model="picks").bind_tools([pick]).invoke("Pick")
    return {
        "text": plain.invoke(QUESTION).content,
        "stream": "".join(str(chunk.content) for chunk in plain.stream(QUESTION)),
        "sources": annotations,
        "streamed sources": [
            note["title"]
            for chunk in ChatOpenAI(model="tea", use_responses_api=True).stream(QUESTION)
            for part in chunk.content
            for note in part.get("annotations", [])
        ],
        "object": form.model_dump(),
        "call": called.tool_calls[0]["name"],
    }


def litellm() -> Any:
    import litellm

    given = {"model": "openai/tea", "api_base": V1, "api_key": key}
    whole = litellm.completion(messages=[{"role": "user", "content": QUESTION}], **given)
    chunks = litellm.completion(
        messages=[{"role": "user", "content": QUESTION}], stream=True, **given
    )
    responses = litellm.responses(input=QUESTION, **given)
    message = whole.choices[0].message
    asked = {"messages": [{"role": "user", "content": QUESTION}], "api_base": V1, "api_key": key}
    form = litellm.completion(model="openai/json", response_format=Teas, **asked)
    function = {"name": "pick", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": function}]
    called = litellm.completion(model="openai/picks", tools=tools, **asked).choices[0].message
    return {
        "text": message.content,
        "sources": [each["url_citation"]["title"] for each in message.annotations],
        "stream": "".join(chunk.choices[0].delta.content or "" for chunk in chunks),
        "responses": responses.output[-1].content[0].text,
        "object": json.loads(form.choices[0].message.content),
        "call": called.tool_calls[0].function.name,
    }


def llamaindex() -> Any:
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(model="tea", api_base=V1, api_key=key, is_chat_model=True)
    asked = [ChatMessage(role="user", content=QUESTION)]

    def pick(of: str) -> str:
        """Pick."""
        return "green"

    given = {"api_base": V1, "api_key": key, "is_chat_model": True}
    calls = OpenAILike(model="picks", is_function_calling_model=True, **given)
    called = calls.chat_with_tools([FunctionTool.from_defaults(pick)], user_msg="Pick")
    forms = OpenAILike(model="json", should_use_structured_outputs=True, **given)
    links = {"extra_body": {"groundhook": {"citations": "links"}}}
    linked = OpenAILike(
        model="tea", api_base=V1, api_key=key, is_chat_model=True, additional_kwargs=links
    )
    return {
        "links": linked.chat(asked).message.content.count("](http"),
        "text": model.chat(asked).message.content,
        "stream": "".join(chunk.delta or "" for chunk in model.stream_chat(asked)),
        "call": calls.get_tool_calls_from_response(called)[0].tool_name,
        "object": forms.as_structured_llm(Teas).chat(asked).raw.model_dump(),
    }


def pydantic_ai() -> Any:
    from pydantic_ai import Agent, NativeOutput

    def sources(result: Any) -> list[str]:
        parts = result.response.parts
        cited = [note for part in parts for note in getattr(part, "citations", None) or ()]
        return [source.title for note in cited for source in note.sources]

    async def work() -> Any:
        plain = await Agent("openai:tea").run(QUESTION)
        again = await Agent("openai:tea").run(QUESTION, message_history=plain.all_messages())
        form = await Agent("openai:json", output_type=NativeOutput(Teas)).run(QUESTION)
        agent = Agent("openai:picks")

        @agent.tool_plain
        def pick(of: str) -> str:
            """Pick."""
            return "green"

        async with Agent("openai:tea").run_stream(QUESTION) as streamed:
            stream = [text async for text in streamed.stream_text()]
        chat = await Agent("openai-chat:tea").run(QUESTION)
        links = {"extra_body": {"groundhook": {"citations": "links"}}}
        linked = await Agent("openai:tea").run(QUESTION, model_settings=links)
        return {
            "text": plain.output,
            "stream": stream[-1],
            "sources": sources(plain),
            "streamed sources": sources(streamed),
            "chat": chat.output,
            "chat sources": sources(chat),
            "links": linked.output.count("](http"),
            "again": again.output,
            "object": form.output.model_dump(),
            "tools": (await agent.run("Pick")).output,
        }

    return asyncio.run(work())


def openai_agents() -> Any:
    from agents import Agent, Runner, function_tool

    @function_tool
    def pick(of: str) -> str:
        """Pick."""
        return "green"

    async def stream() -> str:
        run = Runner.run_streamed(Agent(name="a", model="tea"), QUESTION)
        data = [event.data async for event in run.stream_events() if event.type.startswith("raw")]
        return "".join(each.delta for each in data if each.type == "response.output_text.delta")

    async def work() -> Any:
        plain = await Runner.run(Agent(name="a", model="tea"), QUESTION)
        history = [*plain.to_input_list(), {"role": "user", "content": QUESTION}]
        again = await Runner.run(Agent(name="a", model="tea"), history)
        tools = await Runner.run(Agent(name="b", model="picks", tools=[pick]), "Pick")
        form = await Runner.run(Agent(name="c", model="json", output_type=Teas), QUESTION)
        notes = plain.new_items[-1].raw_item.content[0].annotations
        return {
            "text": plain.final_output,
            "stream": await stream(),
            "sources": [note.title for note in notes],
            "again": again.final_output,
            "tools": tools.final_output,
            "object": form.final_output.model_dump(),
        }

    return asyncio.run(work())


def instructor() -> Any:
    import instructor as library
    from openai import OpenAI

    with OpenAI() as client:
        asking = library.from_openai(client, mode=library.Mode.JSON_SCHEMA)
        asked = {"model": "json", "messages": [{"role": "user", "content": QUESTION}]}
        made = asking.chat.completions.create(response_model=Teas, **asked)
        *_, last = asking.chat.completions.create_partial(response_model=Teas, **asked)
    return {"object": made.model_dump(), "stream": last.model_dump()}


def llm() -> Any:
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        about = {"model_id": "teas", "model_name": "tea", "api_base": V1}
        about["api_key_name"] = "groundhook"  # without it the command sends no key
        linked = {**about, "model_id": "linked", "api_key_name": "links"}
        # YAML has all of JSON.
        (Path(folder) / "extra-openai-models.yaml").write_text(json.dumps([about, linked]))
        os.environ["LLM_USER_PATH"] = folder  # noqa: TID251 - a process of its own

        def ask(*arguments: str) -> str:
            command = [str(Path(sys.executable).parent / "llm"), *arguments]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        ask("keys", "set", "groundhook", "--value", key)
        ask("keys", "set", "links", "--value", links_key)
        return {
            "links": ask("-m", "linked", QUESTION, "--no-stream").count("](http"),
            "streamed links": ask("-m", "linked", QUESTION).count("](http"),
            "text": ask("-m", "teas", QUESTION, "--no-stream"),
            "stream": ask("-m", "teas", QUESTION),
            "again": ask("-c", QUESTION),
        }


CLIENTS = {
    "langchain": langchain,
    "litellm": litellm,
    "llamaindex": llamaindex,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "instructor": instructor,
    "llm": llm,
}
sys.stdout.write(json.dumps(CLIENTS[name]()))

"""What leaves the host renders under the chat templates of models that people run themselves: one
leading system message, none at all, roles that alternate. The templates are written in the style of
each family and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from groundhook.core.ports import ModelCall
from groundhook.core.types.connector_spec import ConnectorSpec
from groundhook.core.types.turn import Message
from groundhook.host.llm.request import request
from groundhook.host.turn.prompt.source_block import build_prompt

ALTERNATE = """
{%- set turn = namespace(n=0) -%}
{%- for m in messages if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) -%}
  {%- if (m.role == 'user') != (turn.n % 2 == 0) -%}
    {{ raise_exception('after the optional system message, roles must alternate user/assistant') }}
  {%- endif -%}
  {%- set turn.n = turn.n + 1 -%}
{%- endfor -%}
"""
MESSAGES = """{%- for m in messages %}<{{ m.role }}>{{ m.content }}
{%- for call in m.tool_calls or [] %}[{{ call.function.name }}]{% endfor %}</{{ m.role }}>
{%- endfor %}"""
FIRST_ONLY = """
{%- for m in messages -%}
  {%- if m.role in ('system', 'developer') and not loop.first -%}
    {{ raise_exception('the system message must be the first') }}
  {%- endif -%}
{%- endfor -%}
"""
TEXT_ONLY = """
{%- for m in messages -%}
  {%- if m.content is not string and m.content is not none -%}
    {{ raise_exception('content must be text') }}
  {%- endif -%}
{%- endfor -%}
"""
NO_SYSTEM = """
{%- for m in messages if m.role in ('system', 'developer') -%}
  {{ raise_exception('system role not supported') }}
{%- endfor -%}
"""
ASKS = """
{%- if not messages | selectattr('role', 'equalto', 'user') | list -%}
  {{ raise_exception('no user message was found') }}
{%- endif -%}
"""
STYLES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "gemma": (NO_SYSTEM + ALTERNATE + TEXT_ONLY + MESSAGES, {"system": "none"}),
    "mistral": (FIRST_ONLY + ALTERNATE + MESSAGES, {}),
    "qwen": (FIRST_ONLY + ASKS + MESSAGES, {}),
    "llama": (FIRST_ONLY + TEXT_ONLY + MESSAGES, {"sources": "system"}),
    "smollm": (TEXT_ONLY + MESSAGES, {}),
}

SOURCES = 'BEGIN SOURCES f00d\n<source id="#ref:a1b2">Some text</source>\nEND SOURCES f00d'
HOW = "Cite well."


def written(role: Any, content: Any = "…", **more: Any) -> Message:
    return Message(role=role, content=content, **more)


CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
ROUND = [
    written("assistant", "", tool_calls=[CALL, {**CALL, "id": "c2"}]),
    written("tool", "3", tool_call_id="c1"),
    written("tool", "4", tool_call_id="c2"),
]
PROMPTS = [written("system", "Be brief."), written("system", "Be kind.")]
EARLIER = [
    written("user", "first"),
    written("assistant", "answer"),
    written("user", "second"),
]
CONVERSATIONS: dict[str, list[Message]] = {
    "one-turn": [written("user", "second")],
    "prompts": [*PROMPTS, written("user", "second")],
    "conversation": [*PROMPTS, *EARLIER],
    "hook-context": [*PROMPTS, *EARLIER[:2], written("system", "from a hook"), EARLIER[2]],
    "hook-developer": [*EARLIER[:2], written("developer", "from a hook"), EARLIER[2]],
    "greeting": [
        *PROMPTS,
        written("assistant", "Hello!"),
        written("user", "second"),
    ],
    "two-in-a-row": [
        *PROMPTS,
        written("user", "first"),
        written("user", "second"),
    ],
    "answers-in-a-row": [
        *EARLIER[:2],
        written("assistant", "more"),
        written("user", "second"),
    ],
    "parts": [
        *PROMPTS,
        written("user", [{"type": "text", "text": "second"}, {"type": "data"}]),
    ],
    "earlier-tools": [
        EARLIER[0],
        *ROUND,
        written("assistant", "7"),
        written("user", "second"),
    ],
}


def refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def rendered(style: str, call: ModelCall) -> str:
    template, options = STYLES[style]
    made = TypeAdapter(ConnectorSpec).validate_python(
        {"id": style, "type": "openai", "options": {"model": style, **options}}
    )
    environment = jinja2.Environment(undefined=jinja2.ChainableUndefined)
    environment.globals["raise_exception"] = refuse
    body = request(call, made)
    return environment.from_string(template).render(messages=body["messages"])


def call(messages: list[Message], after: list[Message] | None = None) -> ModelCall:
    """As a turn makes it: with sources, and the rounds of tools behind."""
    prompt = build_prompt([], messages, SOURCES, HOW)
    return ModelCall(messages=[*prompt.messages, *(after or ())], sources=prompt.sources)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("after", [[], ROUND, [*ROUND, *ROUND]], ids=["", "round", "rounds"])
def test_every_request_renders_without_loss(style: str, name: str, after: list[Message]) -> None:
    text = rendered(style, call(CONVERSATIONS[name], after))
    assert text.count(SOURCES) == text.count(HOW) == 1
    for message in CONVERSATIONS[name]:
        assert message.text in text
    assert text.index(SOURCES) < text.rindex("second")


def test_sources_are_placed_where_the_connector_says() -> None:
    messages = CONVERSATIONS["conversation"]
    assert f"<user>{SOURCES}\n\nsecond</user>" in rendered("qwen", call(messages))
    assert f"{SOURCES}</system>" in rendered("llama", call(messages))
    assert rendered("gemma", call(messages)).startswith("<user>Cite well.\n\nBe brief.\n\nBe kind.")


def test_the_styles_refuse_what_the_models_refuse() -> None:
    """So that the tests above show something."""
    for style, messages in {
        "gemma": [{"role": "system", "content": "x"}],
        "mistral": [{"role": "user", "content": "x"}] * 2,
        "qwen": [{"role": "system", "content": "x"}] * 2,
        "llama": [{"role": "user", "content": []}],
    }.items():
        environment = jinja2.Environment()
        environment.globals["raise_exception"] = refuse
        with pytest.raises(jinja2.TemplateError):
            environment.from_string(STYLES[style][0]).render(messages=messages)


ROLES = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant"]), st.sampled_from(["a", "b c"])),
    max_size=8,
)


@given(ROLES, st.sampled_from(["gemma", "mistral"]))
def test_any_order_of_messages_renders(roles: list[tuple[Any, str]], style: str) -> None:
    messages = [written(role, text) for role, text in roles]
    rendered(style, ModelCall(messages=[*messages, written("user", "question")]))

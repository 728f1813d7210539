"""The window of a model as its endpoint reports it. Self-hosted servers report it, each in its own
way: vLLM and several providers in the list of models, llama.cpp in `/props`, Ollama in `/api/show`.
OpenAI's own endpoint does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

# Returns the JSON of an address: by GET, or by POST with a body.
Fetch = Callable[[str, Mapping[str, Any] | None], Awaitable[Any]]

# vLLM; OpenRouter and Together; Groq; Mistral
_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
_SILENT = ("", "api.openai.com")


def may_report(host: str) -> bool:
    """Return whether the endpoint may report windows."""
    return (urlsplit(host).hostname or "") not in _SILENT


async def reported_window(fetch: Fetch, host: str, model: str) -> int:
    """Return the window of a model in tokens; 0 where the endpoint does not report it. `host` is
    the base URL of the endpoint. Raises what `fetch` raises."""
    base = host.rstrip("/")
    entry = _entry(await fetch(f"{base}/models", None), model)
    if found := next((number for key in _KEYS if (number := _number(entry.get(key)))), 0):
        return found
    root = base.removesuffix("/v1")
    if entry.get("owned_by") == "llamacpp":
        # First the window that the server was started with: the model's own may be larger.
        settings = _mapping(await fetch(f"{root}/props", None)).get("default_generation_settings")
        trained = _mapping(entry.get("meta")).get("n_ctx_train")
        return _number(_mapping(settings).get("n_ctx")) or _number(trained)
    if entry.get("owned_by") == "library":
        return _ollama_window(_mapping(await fetch(f"{root}/api/show", {"model": model})))
    return 0


def _entry(models: Any, model: str) -> Mapping[str, Any]:
    """Return the entry for a model in a list of models, or the only entry, which may have another
    name."""
    entries = [_mapping(entry) for entry in _list(_mapping(models).get("data"))]
    named = [entry for entry in entries if entry.get("id") in (model, f"{model}:latest")]
    return (named or (entries if len(entries) == 1 else [{}]))[0]


def _ollama_window(shown: Mapping[str, Any]) -> int:
    """Return the window of an Ollama model: what its file sets, else the model's own."""
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and (size := value.strip()).isdecimal() and len(size) < 10:
            return int(size)
    about = _mapping(shown.get("model_info"))
    return next((_number(about[key]) for key in about if key.endswith(".context_length")), 0)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

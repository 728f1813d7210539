"""The reranker that calls a model, over the network or in a folder: it chooses the provider,
enforces the deadline, retries once, and turns failures into RerankError."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from groundhook.core.concealed import conceal
from groundhook.core.errors import RerankError
from groundhook.core.ports import Ranked, Scope
from groundhook.core.registry import Registry
from groundhook.core.settings import RerankSettings
from groundhook.core.trace import span
from groundhook.core.types.closing import OnClose
from groundhook.core.types.search import Item, RerankProvider
from groundhook.rerankers.cohere import COHERE
from groundhook.rerankers.endpoint import ENDPOINT, TEI
from groundhook.rerankers.judgement import rank_by_scores, text_of
from groundhook.rerankers.onnx import ONNX
from groundhook.rerankers.provider_contract import (
    Provider,
    ProviderType,
    RerankerAccess,
    RerankRequestFailed,
    Scores,
)
from groundhook.rerankers.voyage import VOYAGE

CLOSING_TIME = 5.0  # seconds allowed for closing connections
FIRST_WAIT = 0.2  # seconds before the retry when the service sends no Retry-After
_MAY_RECOVER = frozenset({0, 408, 425, 429, 500, 502, 503, 504, 529})
_MODELS = {
    "cohere": re.compile(r"rerank-(?:v\d|english|multilingual)"),
    "voyage": re.compile(r"rerank-(?:\d|lite)"),
}


def rerank_providers() -> Registry[ProviderType]:
    """Return a new registry of the built-in providers, in the order in which `auto` tries them."""
    types: dict[RerankProvider, ProviderType] = {
        "cohere": COHERE,
        "voyage": VOYAGE,
        "endpoint": ENDPOINT,
        "tei": TEI,
        "onnx": ONNX,
    }
    providers: Registry[ProviderType] = Registry("rerank provider")
    for name, type in types.items():
        providers.add(name, type)
    return providers


class ModelReranker:
    """A `core.ports.Reranker`. It sends all items in one call, since scores of different calls
    are not comparable, and retries once after a transient failure if the deadline allows."""

    def __init__(
        self,
        environment: Mapping[str, str],
        types: Registry[ProviderType],
        on_close: OnClose,
        root: Path = Path(),
    ) -> None:
        self._root = root
        self._environment, self._types, self._on_close = environment, types, on_close
        self._open: dict[tuple[str, RerankerAccess], Provider] = {}

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        name = choose_provider(options, self._environment, self._types)
        kind = self._types.get(name)
        access = (
            local_access(options, self._root, self._on_close)
            if kind.local
            else resolve_access(name, kind, options, self._environment, self._on_close)
        )
        if (name, access) not in self._open:
            self._open[name, access] = kind.make(access)
        texts = [text_of(item, options.max_chars or kind.max_chars) for item in items]
        model = options.model or kind.model
        deadline = anyio.current_time() + options.timeout_ms / 1000
        with span("rerank_model", f"{name} {model}".strip(), documents=len(texts)):
            try:
                with anyio.fail_after(options.timeout_ms / 1000):
                    scores = await _judge_with_retry(
                        self._open[name, access], model, query, texts, deadline
                    )
            except TimeoutError as exc:
                hint = "raise search.rerank.timeout_ms"
                raise RerankError(
                    f"{name!r} did not answer within {options.timeout_ms} ms", hint=hint
                ) from exc
            except RerankRequestFailed as exc:
                raise _rerank_error(name, access, exc) from exc
        ranked = rank_by_scores(scores, len(items))
        if not ranked:
            raise RerankError(f"{name!r} returned a score for none of the {len(items)} items")
        return ranked


async def _judge_with_retry(
    provider: Provider, model: str, query: str, texts: Sequence[str], deadline: float
) -> Scores:
    """Call the provider, and once more after a transient failure. `deadline` is a time of the event
    loop's clock."""
    try:
        return await provider.judge(model, query, texts, deadline - anyio.current_time())
    except RerankRequestFailed as exc:
        wait = FIRST_WAIT if exc.wait_s is None else exc.wait_s
        left = deadline - anyio.current_time()
        if exc.status not in _MAY_RECOVER or wait >= left:
            raise
    await anyio.sleep(wait)
    return await provider.judge(model, query, texts, deadline - anyio.current_time())


def choose_provider(
    options: RerankSettings, environment: Mapping[str, str], types: Registry[ProviderType]
) -> str:
    """Return the name of the provider: the configured one; else `onnx` if a folder is set,
    `endpoint` if a host is set; else the one that the model's name belongs to; else the first whose
    key is set. Raises UnknownName for an unknown provider and RerankError if none fits."""
    if options.provider != "auto":
        types.get(options.provider)
        return options.provider
    if options.path:
        return "onnx"
    if options.host:
        return "endpoint"
    for name, pattern in _MODELS.items():
        if options.model and pattern.match(options.model):
            return name
    for name in types:
        if any(environment.get(variable, "").strip() for variable in types.get(name).variables):
            return name
    variables = " or ".join(
        variable for name in types for variable in types.get(name).variables[:1]
    )
    raise RerankError(
        "no rerank provider is configured",
        hint=f"set {variables}, or set search.rerank.host to an endpoint's address",
    )


def local_access(options: RerankSettings, root: Path, on_close: OnClose) -> RerankerAccess:
    """Return the model's folder as an address. Raises RerankError if no folder is set."""
    if not options.path:
        raise RerankError(
            "the rerank provider 'onnx' needs a folder", hint="set search.rerank.path"
        )
    return RerankerAccess(host=str(root / options.path), closing=on_close)


def resolve_access(
    name: str,
    kind: ProviderType,
    options: RerankSettings,
    environment: Mapping[str, str],
    on_close: OnClose,
) -> RerankerAccess:
    """Return the provider's base URL and key. Raises RerankError when one of them is missing or the
    URL is not http(s)."""
    host = options.host or kind.host
    if not re.match(r"https?://[^/\s]", host):
        problem = (
            "search.rerank.host is not an http(s) address"
            if host
            else f"the rerank provider {name!r} needs an address"
        )
        raise RerankError(problem, hint="set search.rerank.host")
    variables = (options.api_key_env,) if options.api_key_env else kind.variables
    for variable in variables:
        if key := environment.get(variable, "").strip():
            conceal(variable, key)
            return RerankerAccess(host=host, key=key, variable=variable, closing=on_close)
    if variables:
        raise RerankError(
            f"the rerank provider {name!r} has no key",
            hint=f"set the environment variable {' or '.join(variables)}",
        )
    return RerankerAccess(host=host, closing=on_close)


def _rerank_error(name: str, access: RerankerAccess, failed: RerankRequestFailed) -> RerankError:
    reason = f": {failed.reason}" if failed.reason else ""
    if failed.status == 0:
        return RerankError(f"{name!r} cannot be reached at {access.host}{reason}")
    if failed.status in (401, 403):
        hint = f"check {access.variable}" if access.variable else "set search.rerank.api_key_env"
        return RerankError(f"{name!r} refused the key ({failed.status}){reason}", hint=hint)
    if failed.status == 429:
        return RerankError(
            f"{name!r} received too many requests ({failed.status}){reason}", hint="try again later"
        )
    if 400 <= failed.status < 500:
        hint = "search.rerank.max_items and search.rerank.max_chars limit what is sent"
        return RerankError(f"{name!r} refused the request ({failed.status}){reason}", hint=hint)
    return RerankError(f"{name!r} failed ({failed.status}){reason}")

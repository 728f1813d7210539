"""The reranker with a model behind a network: which provider is asked, for how long, and what its
failures mean."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from groundhook.host.core.errors import RerankError
from groundhook.host.core.ports import Ranked, Scope
from groundhook.host.core.registry import Registry
from groundhook.host.core.settings import RerankSettings
from groundhook.host.core.trace import span
from groundhook.host.core.types.search import Item
from groundhook.rerankers.cohere import COHERE
from groundhook.rerankers.endpoint import ENDPOINT, TEI
from groundhook.rerankers.judgement import scored, text_of
from groundhook.rerankers.providers import Access, Failed, Provider, ProviderType, Scores
from groundhook.rerankers.voyage import VOYAGE

CLOSING_TIME = 5.0  # seconds that open connections get to close
FIRST_WAIT = 0.2  # seconds before the second try where the service does not say
_MAY_RECOVER = frozenset({0, 408, 425, 429, 500, 502, 503, 504, 529})
_MODELS = {
    "cohere": re.compile(r"rerank-(?:v\d|english|multilingual)"),
    "voyage": re.compile(r"rerank-(?:\d|lite)"),
}

Closing = Callable[[Callable[[], Awaitable[None]]], object]


def rerank_providers() -> Registry[ProviderType]:
    """The providers that ship with Groundhook, in the order in which `auto` tries them; others may
    be added."""
    providers: Registry[ProviderType] = Registry("rerank provider")
    for name, kind in {
        "cohere": COHERE,
        "voyage": VOYAGE,
        "endpoint": ENDPOINT,
        "tei": TEI,
    }.items():
        providers.add(name, kind)
    return providers


@asynccontextmanager
async def open_model_reranker(environment: Mapping[str, str]) -> AsyncIterator[ModelReranker]:
    """Keys are looked up in `environment`; clients are imported and connections opened by the first
    call that needs them."""
    stack = AsyncExitStack()
    try:
        yield ModelReranker(
            environment, rerank_providers(), lambda close: stack.push_async_callback(close)
        )
    finally:
        with anyio.move_on_after(CLOSING_TIME, shield=True):
            await stack.aclose()


class ModelReranker:
    """A `host.core.ports.Reranker`: all items in one call, since scores of different calls cannot
    be compared. A call that fails in a way that may pass is made once more, if the time allows."""

    def __init__(
        self, environment: Mapping[str, str], types: Registry[ProviderType], closing: Closing
    ) -> None:
        self._environment, self._types, self._closing = environment, types, closing
        self._open: dict[tuple[str, Access], Provider] = {}

    async def rerank(
        self, query: str, items: Sequence[Item], options: RerankSettings, scope: Scope, /
    ) -> Sequence[Ranked]:
        name = chosen(options, self._environment, self._types)
        kind = self._types.get(name)
        access = access_of(name, kind, options, self._environment, self._closing)
        if (name, access) not in self._open:
            self._open[name, access] = kind.make(access)
        texts = [text_of(item, options.max_chars or kind.max_chars) for item in items]
        model = options.model or kind.model
        deadline = anyio.current_time() + options.timeout_ms / 1000
        with span("rerank_model", f"{name} {model}".strip(), documents=len(texts)):
            try:
                with anyio.fail_after(options.timeout_ms / 1000):
                    scores = await _tried(self._open[name, access], model, query, texts, deadline)
            except TimeoutError as exc:
                hint = "search.rerank.timeout_ms sets how long"
                raise RerankError(
                    f"{name!r} did not answer within {options.timeout_ms} ms", hint=hint
                ) from exc
            except Failed as exc:
                raise _told(name, access, exc) from exc
        ranked = scored(scores, len(items))
        if not ranked:
            raise RerankError(f"{name!r} judged none of the {len(items)} items")
        return ranked


async def _tried(
    provider: Provider, model: str, query: str, texts: Sequence[str], deadline: float
) -> Scores:
    try:
        return await provider.judge(model, query, texts, deadline - anyio.current_time())
    except Failed as exc:
        wait = FIRST_WAIT if exc.wait_s is None else exc.wait_s
        left = deadline - anyio.current_time()
        if exc.status not in _MAY_RECOVER or wait >= left:
            raise
    await anyio.sleep(wait)
    return await provider.judge(model, query, texts, deadline - anyio.current_time())


def chosen(
    options: RerankSettings, environment: Mapping[str, str], types: Registry[ProviderType]
) -> str:
    """The provider: the one that is named; else `endpoint` where there is an address; else the one
    that has such a model; else the first whose key is there. Raises RerankError, UnknownName."""
    if options.provider != "auto":
        types.get(options.provider)
        return options.provider
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
        "there is no model to rerank with",
        hint=f"set {variables}, or search.rerank.host to an endpoint's address",
    )


def access_of(
    name: str,
    kind: ProviderType,
    options: RerankSettings,
    environment: Mapping[str, str],
    closing: Closing,
) -> Access:
    """Where the provider is, and the key. Raises RerankError when one of them is missing."""
    host = options.host or kind.host
    if not re.match(r"https?://[^/\s]", host):
        said = (
            f"{host!r} is not an http(s) address"
            if host
            else f"the rerank provider {name!r} needs an address"
        )
        raise RerankError(said, hint="set search.rerank.host")
    variables = (options.api_key_env,) if options.api_key_env else kind.variables
    for variable in variables:
        if key := environment.get(variable, "").strip():
            return Access(host=host, key=key, variable=variable, closing=closing)
    if variables:
        raise RerankError(
            f"reranking by {name!r} has no key",
            hint=f"set the environment variable {' or '.join(variables)}",
        )
    return Access(host=host, closing=closing)


def _told(name: str, access: Access, failed: Failed) -> RerankError:
    said = f": {failed.said}" if failed.said else ""
    if failed.status == 0:
        return RerankError(f"{name!r} cannot be reached at {access.host}{said}")
    if failed.status in (401, 403):
        hint = f"check {access.variable}" if access.variable else "set search.rerank.api_key_env"
        return RerankError(f"{name!r} refused the key ({failed.status}){said}", hint=hint)
    if failed.status == 429:
        return RerankError(
            f"{name!r} has had too many requests ({failed.status}){said}", hint="try again later"
        )
    if 400 <= failed.status < 500:
        hint = "search.rerank.max_items and search.rerank.max_chars bound what is sent"
        return RerankError(f"{name!r} refused the request ({failed.status}){said}", hint=hint)
    return RerankError(f"{name!r} failed ({failed.status}){said}")

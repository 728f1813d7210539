"""Decides which searches run automatically, and fills a request's gaps. Pure functions.

The request outranks the hook, the hook outranks the assistant.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from groundhook.core.settings import DISABLED, Settings
from groundhook.core.source_settings import DBSettings, KBSettings, WebSettings
from groundhook.core.types.search import SEARCH_TYPES, SearchRequest, SearchType
from groundhook.core.types.turn import CreateReturn, SearchChoice

NOTHING_USABLE = "nothing to search: no collection, model or web provider is configured"
NOT_CONFIGURED = "the assistant has no search configuration"


@dataclass(frozen=True)
class Plan:
    """The types to search, or the reason why nothing is searched."""

    types: tuple[SearchType, ...] = ()
    reason: str = ""


def plan(
    requested: bool | None,
    hook: CreateReturn | None,
    settings: Settings,
    user_results: int,
    usable: Collection[SearchType],
) -> Plan:
    """Decide on automatic search.

    `requested` is the request's `search`, `hook` the result of Create, `user_results` the number of
    items from the user's own data, `usable` the types that can be searched if forced (a provider is
    configured, collections or models exist). Types that `uses` disables are never searched.
    """
    # First: not even a request may search what `uses` disables.
    allowed = tuple(type for type in SEARCH_TYPES if not settings.uses.disables(type))
    if not allowed:
        return Plan(reason=f"uses.{settings.uses.disables('kb')} is '{DISABLED}'")
    if reason := _reason_against(requested, hook, settings, user_results):
        return Plan(reason=reason)
    choice = _choice(requested, hook)
    if isinstance(choice, SearchChoice) and choice.search_types is not None:
        return Plan(_common(allowed, choice.search_types))
    if configured := tuple(type for type in allowed if _section(settings, type).enabled):
        return Plan(configured)
    if not requested and not choice:
        return Plan(reason=NOT_CONFIGURED)
    # A request or a hook that wants a search gets every type that has something to search.
    types = _common(allowed, usable)
    return Plan(types, "" if types else NOTHING_USABLE)


def _common(types: Sequence[SearchType], chosen: Collection[SearchType]) -> tuple[SearchType, ...]:
    return tuple(type for type in types if type in chosen)


def _choice(requested: bool | None, hook: CreateReturn | None) -> bool | SearchChoice | None:
    """Return what the hook chose, unless the request outranks it."""
    return hook.search if hook and requested is None else None


def _reason_against(
    requested: bool | None, hook: CreateReturn | None, settings: Settings, user_results: int
) -> str:
    """Return why the request, the hook or the user's own data make a search unnecessary, or ""."""
    if requested is not None:  # the request outranks the hook and the user's own data
        return "" if requested else "the request says search: false"
    if refused(requested, hook):
        return "the Create hook returned search: false"
    # A hook that has built the prompt has usually searched: the model would get its sources twice.
    if hook and hook.messages and hook.search is None:
        return "the Create hook returned messages"
    if user_results >= settings.search.options.skip_threshold:
        return f"the user's own data gave {user_results} results"
    return ""


def refused(requested: bool | None, hook: CreateReturn | None) -> bool:
    """Return whether the request, or else the hook, switches automatic search off."""
    choice = _choice(requested, hook)
    if isinstance(choice, SearchChoice):
        return not choice.need_search
    return requested is False or choice is False


def complete(request: SearchRequest, settings: Settings) -> SearchRequest:
    """Return the request with its gaps filled from the settings: a limit, for kb the collections
    and their options, for db the models."""
    search = settings.search
    filled: dict[str, object] = {}
    if request.limit is None:
        filled["limit"] = _section(settings, request.type).max_results
    if request.type == "kb":
        if request.collections is None:
            filled["collections"] = search.kb.collections or settings.kb.collections
        if request.threshold is None:
            filled["threshold"] = search.kb.threshold
        if request.graph is None:
            filled["graph"] = search.kb.graph
        for name in ("groups", "neighbours", "diversity"):
            # 0 switches each of them off, which is what a source does without the option.
            if getattr(request, name) is None and (wanted := getattr(search.kb, name)):
                filled[name] = wanted
    if request.type == "db" and request.models is None:
        filled["models"] = search.db.models or settings.db.models
    return request.model_copy(update=filled)


def timeout_ms(type: SearchType, settings: Settings) -> int:
    """Return the deadline of a search of this type, in milliseconds."""
    return _section(settings, type).timeout_ms


def _section(settings: Settings, type: SearchType) -> WebSettings | KBSettings | DBSettings:
    match type:
        case "web":
            return settings.search.web
        case "kb":
            return settings.search.kb
        case "db":
            return settings.search.db

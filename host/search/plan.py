"""Decides which searches run automatically, and fills a request's gaps. Pure functions.

The request outranks the hook, the hook outranks the assistant.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from groundhook.host.core.settings import DISABLED, Settings
from groundhook.host.core.source_settings import DBSettings, KBSettings, WebSettings
from groundhook.host.core.types.search import SEARCH_TYPES, SearchRequest, SearchType
from groundhook.host.core.types.turn import CreateReturn, SearchChoice


@dataclass(frozen=True)
class Plan:
    """The types to search, or the reason for none."""

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
    disabled = {type: key for type in SEARCH_TYPES if (key := settings.uses.disables(type))}
    configured = tuple(
        type for type in SEARCH_TYPES if _section(settings, type).enabled and type not in disabled
    )
    usable = [type for type in usable if type not in disabled]
    if len(disabled) == len(SEARCH_TYPES):
        return Plan(reason=f"uses.{disabled['kb']} is '{DISABLED}'")
    if requested is False:
        return Plan(reason="the request says search: false")
    if requested is True:
        types = configured or tuple(type for type in SEARCH_TYPES if type in usable)
        return Plan(
            types,
            ""
            if types
            else "nothing to search: no collection, model or web provider is configured",
        )
    choice = hook.search if hook else None
    if refused(requested, hook):
        return Plan(reason="the Create hook returned search: false")
    if hook and hook.messages and choice is None:
        return Plan(reason="the Create hook returned messages")
    if user_results >= settings.search.options.skip_threshold:
        return Plan(reason=f"the user's own data gave {user_results} results")
    if isinstance(choice, SearchChoice) and choice.search_types is not None:
        wanted = [type for type in SEARCH_TYPES if type in choice.search_types]
        return Plan(tuple(type for type in wanted if type not in disabled))
    if choice is not None:
        return Plan(configured or tuple(type for type in SEARCH_TYPES if type in usable))
    return Plan(configured, "" if configured else "the assistant has no search configuration")


def refused(requested: bool | None, hook: CreateReturn | None) -> bool:
    """Return whether the request, or else the hook, switches automatic search off."""
    choice = hook.search if hook else None
    if requested is not None:
        return not requested
    return choice is False or (isinstance(choice, SearchChoice) and not choice.need_search)


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
            if getattr(request, name) is None and (wanted := getattr(search.kb, name)):
                filled[name] = wanted
    if request.type == "db" and request.models is None:
        filled["models"] = search.db.models or settings.db.models
    return request.model_copy(update=filled)


def timeout_ms(type: SearchType, settings: Settings) -> int:
    """Return the deadline of a search of this type, in milliseconds."""
    return _section(settings, type).timeout_ms


def _section(settings: Settings, type: SearchType) -> WebSettings | KBSettings | DBSettings:
    sections: dict[SearchType, WebSettings | KBSettings | DBSettings] = {
        "web": settings.search.web,
        "kb": settings.search.kb,
        "db": settings.search.db,
    }
    return sections[type]

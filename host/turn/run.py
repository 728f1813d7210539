"""The state of one turn as it runs."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from groundhook.core.channel import Channel
from groundhook.core.error_events import warning_event
from groundhook.core.errors import HostError, UsageError
from groundhook.core.hook_engine import HookScript, ScriptFunction
from groundhook.core.language.phrases import sentences, spoken_languages
from groundhook.core.ports import Connector
from groundhook.core.problems import Problem
from groundhook.core.settings import Settings
from groundhook.core.types.base import UnknownKey
from groundhook.core.types.events import HookJournal, StreamStart, Warned
from groundhook.core.types.search import Certainty, SearchResult, SearchType, SourceType
from groundhook.core.types.turn import CreateReturn, Message, NextReturn, connector_ids
from groundhook.host.config.package import Package
from groundhook.host.config.prompts import Prompts
from groundhook.host.search.certainty import best, certainty_of_turn
from groundhook.host.search.citations.facts import words_of
from groundhook.host.search.citations.index import CitationIndex
from groundhook.host.search.searcher import Searcher
from groundhook.host.tools.chosen import ChosenTools
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.turn.answer import GrowingAnswer
from groundhook.host.turn.attachments import TurnFiles
from groundhook.host.turn.content import question_of
from groundhook.host.turn.context import (
    CallAssistant,
    Request,
    RunContext,
    Runtime,
    own_model,
    search_scope,
)
from groundhook.host.turn.names import AssistantNames
from groundhook.host.turn.outbox import Outbox

MOST_ASSISTANTS = 5  # in a chain of calls and delegations


# Calls a function of the package's scripts, with its arguments by name or in order, in an isolate
# of its own under the limits of hooks. Raises HookError.
CallScript = Callable[
    ["AssistantRun", HookScript, ScriptFunction, Mapping[str, Any] | Sequence[Any]], Awaitable[Any]
]


@dataclass
class OpenScripts:
    """Counts the functions of packages that are running in an assistant's turn. Functions of other
    assistants that it calls count with its own."""

    count: int = 0


@dataclass
class AssistantRun:
    """The state of one assistant's part of a turn. The steps of the turn write into it in order,
    and do not change earlier values."""

    runtime: Runtime
    request: Request
    package: Package
    channel: Channel
    settings: Settings
    searcher: Searcher
    answer: GrowingAnswer
    question: str  # the question that is searched for
    unknown: tuple[UnknownKey, ...]
    outbox: Outbox
    call_assistant: CallAssistant
    call_script: CallScript
    context: RunContext  # for turns that this one calls
    files: TurnFiles  # that the user's messages bring
    returned: NextReturn | None = None  # the result of the Next hook
    model_failure: str = ""  # set once its error event is sent
    journal: HookJournal = ()  # the calls of Create, if it has asked the user
    results: list[SearchResult] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)  # theme, route, locale of Create
    timings: dict[str, float] = field(default_factory=dict)
    # Toolboxes with the lists that they were made from: servers list their tools once for each
    # list.
    toolboxes: list[tuple[tuple[Any, ...], Toolbox]] = field(default_factory=list)
    chosen: ChosenTools | None = None  # what Create returned as `tools`
    open_scripts: OpenScripts = field(default_factory=OpenScripts)
    tools_lock: anyio.Lock = field(default_factory=anyio.Lock)

    @staticmethod
    def begin(
        runtime: Runtime,
        request: Request,
        channel: Channel,
        call_assistant: CallAssistant,
        call_script: CallScript,
        *,
        context: RunContext | None = None,
        outbox: Outbox | None = None,
        follows_text: bool = False,
    ) -> AssistantRun:
        """Return a run with the settings that are known before the Create hook.

        `context` and `outbox` belong to the run that calls this assistant or delegates its turn to
        it; they are None for the first run. `follows_text`: another assistant has already streamed
        text in this turn. Raises UnknownName and ConfigError, and UsageError when assistants call
        each other in a circle or too deep.
        """
        chain = _extend_chain(context.chain if context else (), request.assistant_id)
        ids = context.ids if context else itertools.count(1)
        package = runtime.app.package(request.assistant_id)
        trial = request.trial
        resolved = runtime.app.settings_for(package, options=request.options, trial=trial)
        settings = resolved.settings
        citation_index = CitationIndex(
            settings.search.citation.format,
            runtime.app.collections,
            request.conversation.sources if request.conversation else {},
        )

        kept = request.conversation
        question = (kept.question if kept else "") or question_of(request.messages)

        async def warn(code: str, message: str) -> None:
            await channel.send(Warned(code=code, message=message))

        own = RunContext(runtime=runtime, turn_id=channel.turn_id, chain=chain, ids=ids)
        searcher = Searcher(
            plugins=runtime.plugins,
            settings=settings,
            scope=search_scope(own, request, settings, call_assistant, warn),
            names=AssistantNames(runtime.app, package.id, settings),
            citation_index=citation_index,
            channel=channel,
            ids=ids,
        )
        return AssistantRun(
            runtime=runtime,
            request=request,
            package=package,
            channel=channel,
            settings=settings,
            searcher=searcher,
            answer=GrowingAnswer(
                channel,
                citation_index,
                follows_text=follows_text,
                question_words=words_of(question),
            ),
            question=question,
            unknown=resolved.unknown,
            outbox=outbox or Outbox(channel),
            call_assistant=call_assistant,
            call_script=call_script,
            context=own,
            files=TurnFiles.of(
                request.messages,
                runtime.attachments,
                runtime.web_clients,
                runtime.app.settings.attachments,
            ),
        )

    def adopt(self, created: CreateReturn) -> None:
        """Resolve the settings again, with the result of the Create hook as a layer between the
        assistant's and the request's. Raises ConfigError, HookReturnInvalid."""
        app, options = self.runtime.app, self.request.options
        if created.tools is not None:
            self.chosen = ChosenTools.of(app, self.package.id, created.tools)
            created = created.model_copy(update={"tools": list(self.chosen.toolkits)})
        resolved = app.settings_for(
            self.package, returned=created, options=options, trial=self.request.trial
        )
        self.settings, self.unknown = resolved.settings, resolved.unknown
        scope = replace(
            self.searcher.scope,
            settings=self.settings.search,
            uses=self.settings.uses,
            connector=own_model(self.runtime, self.package.id, self.settings),
        )
        self.searcher = replace(self.searcher, settings=self.settings, scope=scope)
        self.metadata.update(created.metadata or {})
        names = ("theme", "route", "locale")
        self.changed = {name: value for name in names if (value := getattr(created, name))}
        replaced = question_of(created.messages or ())
        # A Create hook that repeats the user's words must not undo the rewriting of a follow-up.
        if replaced and replaced != question_of(self.asked_messages):
            self.question = replaced
        citation_index = self.searcher.citation_index
        # The user's own data was cited before Create chose the format.
        if self.settings.search.citation.format != citation_index.format:
            citation_index.reformat(self.settings.search.citation.format)
            self.results = [
                result.model_copy(
                    update={"items": tuple(citation_index.cite(item) for item in result.items)}
                )
                for result in self.results
            ]

    @property
    def asked_messages(self) -> tuple[Message, ...]:
        """The conversation up to the question: without what a hook has asked since, and the user's
        answers."""
        kept = self.request.conversation
        return (kept.asked if kept else ()) or self.request.messages

    def failed_searches(self) -> tuple[SourceType, ...]:
        """Return the sources of the searches that failed so far, each once."""
        return tuple(dict.fromkeys(result.type for result in self.results if result.error))

    def certainty_of_passages(self) -> Certainty | None:
        """Return the best certainty of the searches for passages; None if none of them judges."""
        judged = [
            result.certainty
            for result in self.searcher.done
            if result.type != "db" and (result.items or result.certainty)
        ]
        return best(judged) if judged else None

    def declined_searches(self) -> tuple[str, ...]:
        """Return why searches without results answered nothing, each reason once."""
        said = (result.explanation for result in self.results if not result.items)
        return tuple(dict.fromkeys(filter(None, said)))

    def start_event(self) -> StreamStart:
        kept = self.request.conversation
        return StreamStart(
            assistant_id=self.package.id,
            chat_id=self.request.options.chat_id,
            message_id=kept.answer_id if kept else "",
            connector=self.connectors[0],
        )

    @property
    def locale(self) -> str:
        """The language of the turn: the one that Create returned, else the request's, else the
        configured one."""
        return self.changed.get("locale") or self.request.options.locale or self.settings.locale

    def sentences(self) -> Mapping[str, str]:
        """The sentences for people, in the language of the conversation."""
        asked = [each.text for each in self.request.messages if each.role == "user"]
        codes = spoken_languages(asked[-1] if asked else "", " ".join(asked[:-1]), self.locale)
        return sentences("quoting", codes, self.settings.messages.model_dump())

    @property
    def prompts(self) -> Prompts:
        """The prompts of the assistant: those of a trial, else of its package, by their preset.
        Raises UnknownName, ConfigError."""
        trial = self.request.trial
        if trial is not None and trial.prompts is not None:
            return trial.prompts
        return self.package.prompts_for(self.settings.prompt_preset)

    @property
    def connectors(self) -> tuple[str, ...]:
        """The ids of the language models that may answer, in the order in which they are tried."""
        return connector_ids(self.settings.connector)

    def connector(self, name: str) -> Connector:
        """Return a connector by its name for this assistant. Raises UnknownName, ConfigError."""
        return self.runtime.connectors(self.runtime.app.connector_id(self.package.id, name))

    @property
    def searchable(self) -> frozenset[SearchType]:
        """The search types that a forced search can use: those with a provider, a collection or a
        model configured."""
        settings = self.settings
        configured: dict[SearchType, object] = {
            "web": self.runtime.web_configured(settings),
            "kb": settings.kb.collections or settings.search.kb.collections,
            "db": settings.db.models or settings.search.db.models,
        }
        return frozenset(type for type, value in configured.items() if value)

    @property
    def request_metadata(self) -> dict[str, Any]:
        """The metadata of the request, and what Create set."""
        return {**self.request.options.metadata, **self.metadata}

    async def warn(self, finding: HostError | Problem) -> None:
        """Send a warning event: the turn goes on in spite of the problem."""
        await self.channel.send(warning_event(finding))


def certainty_of_runs(runs: Sequence[AssistantRun]) -> Certainty | None:
    """Return the certainty of the answer that these runs of one turn have made so far."""
    searches = [result for run in runs for result in run.searcher.done]
    cited = {key for run in runs for key in run.answer.cited_keys}
    return certainty_of_turn(searches, cited, elsewhere=bool(cited))


def _extend_chain(chain: tuple[str, ...], id: str) -> tuple[str, ...]:
    """Return the chain with one more assistant. Raises UsageError if the chain has it already, and
    if the chain gets too long."""
    longer = (*chain, id)
    path = " → ".join(longer)
    if id in chain:
        raise UsageError(f"assistants call each other, or delegate the turn, in a circle: {path}")
    if len(longer) > MOST_ASSISTANTS:
        raise UsageError(
            f"assistants call each other, or delegate the turn, more than {MOST_ASSISTANTS} deep:"
            f" {path}"
        )
    return longer

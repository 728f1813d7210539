"""One stored conversation, as a program holds it: its next questions, its messages, its title."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from groundhook.core.errors import AlreadyDecided, UnknownName, UsageError
from groundhook.core.types.chats import (
    Chat,
    ChatMessage,
    ChatOwner,
    Decision,
    Feedback,
    PendingCall,
    StoredTurn,
)
from groundhook.core.types.contract import NO_CONTRACT, Contract
from groundhook.core.types.events import Event, HookJournal
from groundhook.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.app.requests import conversation, turn_options, validated
from groundhook.host.app.stored_turns import UNDOING_S, StoredTurns
from groundhook.host.app.titles import write_title
from groundhook.host.app.turn_recorder import TurnRecorder, has_ended, milliseconds
from groundhook.host.chats.attachments import file_ids, with_files, without_files
from groundhook.host.chats.history import sources, split
from groundhook.host.chats.ports import Conversations, KeptFile, RequestKey, message_id
from groundhook.host.turn.context import KeptConversation, Request, Runtime

DECLINED = "no answer"  # to a question of a hook
MOST_SUMMARISED = 200  # messages before the question, where the history is summarised

# A question of the user: text, parts, or a whole message.
ChatQuestion = str | Sequence[Mapping[str, Any]] | Message | Mapping[str, Any]


@dataclass
class OpenChat:
    """One conversation with an assistant, stored as it proceeds. `id` continues it later:
    `host.chat(assistant, chat_id=id)`. One turn at a time: another one raises ChatBusy."""

    _of: StoredTurns
    _identity: Identity
    assistant_id: str
    id: str
    is_kept: bool  # whether the store has it; it does from the first message on
    request: RequestKey | None = None  # of the next turn, for a server whose clients repeat it
    contract: Contract = NO_CONTRACT  # of the next turns
    kept: Mapping[str, Any] = field(default_factory=dict)  # with the next turns, for `kept_with`
    can_ask: bool = True  # whether the client can show calls that need the user's approval
    _running: TurnRecorder | None = None

    @asynccontextmanager
    async def send(
        self,
        message: ChatQuestion,
        *,
        after: str = "",
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks the next question, as text or parts, and yields the
        events of its turn. `after` is the id of an earlier answer, behind which the question begins
        a branch. Text behind a question of a hook is the answer to it, as `decide` sends it, unless
        it is none of its choices. Leaving the block stops what is still running; the text so far is
        stored. Raises ChatBusy, UsageError and StorageError, and what `Host.stream` raises; then
        nothing is stored."""
        overrides = turn_options(search, connector, options)
        question, files = self._make_question(message, "")
        leaf = await self._store_chat()
        if after:
            await self._find_message(after)
        question = question.model_copy(update={"parent": after or leaf})
        if leaf and question.parent == leaf:
            question = await self._as_answer(question)
        async with self._run_turn(question, overrides, files=files, first=not leaf) as events:
            yield events

    @asynccontextmanager
    async def edit(
        self,
        message: ChatMessage | str,
        text: ChatQuestion,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks a question of the chat in other words and yields the
        events of its turn, as `send` does. The new question begins a branch, which is shown from
        now on; the old one stays in its own. `message` is the old question or its id. Raises
        UsageError for an answer."""
        await self._end_lost_turn()
        before = await self._find_message(message)
        if before.role != "user":
            raise UsageError("only a question can be edited", hint="regenerate an answer instead")
        _refuse_decision(before)
        question, files = self._make_question(text, before.parent)
        overrides = turn_options(search, connector, options)
        async with self._run_turn(question, overrides, files=files) as events:
            yield events

    @asynccontextmanager
    async def regenerate(
        self,
        message: ChatMessage | str | None = None,
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that asks for another answer and yields the events of its turn,
        as `send` does; the old answer stays in its branch. `message` is that answer, its question,
        or the id of one of them (None: the last answer). Raises UsageError for a chat without a
        question."""
        await self._end_lost_turn()
        if message is None:
            path = await self.messages()
            if not path:
                raise UsageError("the chat has no question yet")
            message = path[-1]
        found = await self._find_message(message)
        id = found.id if found.role == "user" else found.parent
        question = found if found.role == "user" else await self._find_message(id)
        _refuse_decision(question)
        overrides = turn_options(search, connector, options)
        async with self._run_turn(question, overrides, again=True) as events:
            yield events

    @asynccontextmanager
    async def decide(
        self,
        approved: bool | Mapping[str, bool],
        *,
        message: ChatMessage | str | None = None,
        reason: str = "",
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Return a context manager that continues an answer whose calls wait for the user's
        approval, and yields the events of that turn, as `send` does: the approved calls run, and
        the model is told of the others. `approved` is for all calls, or by their ids, each of
        which must be there. `message` is the answer or its id (None: the last one), `reason` what
        the user says: to a question of a hook, the answer ("" stands for "yes"). Raises UsageError
        if no call of the answer waits, or for an answer that is none of the choices, AlreadyDecided
        if the user has decided, or the chat has gone on without a decision."""
        await self._end_lost_turn()
        path: Sequence[ChatMessage] = ()
        if message is None:
            path = await self.messages()
            message = path[-1] if path else ""
        answer = await self._find_message(message)
        pending = answer.answer.pending if answer.answer else ()
        if answer.decisions:  # its turn has no answer
            raise AlreadyDecided
        if not pending:
            if any(each.answer and each.answer.pending for each in path):
                raise AlreadyDecided
            raise UsageError("no call of this answer waits for approval")
        decisions = _decisions(pending, approved, reason)
        question, _ = self._make_question(_in_words(decisions), answer.id)
        question = question.model_copy(update={"decisions": decisions})
        overrides = turn_options(None, None, options)
        async with self._run_turn(question, overrides) as events:
            yield events

    async def messages(self, leaf: str = "") -> Sequence[ChatMessage]:
        """Return the messages from the first to the last of the branch that is shown, or to `leaf`,
        the id of any message. Raises UnknownName."""
        if not self.is_kept:
            return []
        return await self._of.store.conversations.path(self._owner, self.id, leaf)

    async def rate(
        self, message: ChatMessage | str, feedback: Feedback | Mapping[str, Any]
    ) -> None:
        """Store a reader's feedback on an answer. Raises UnknownName, UsageError."""
        id = message if isinstance(message, str) else message.id
        valid = validated(Feedback, feedback, "feedback")
        await self._of.store.conversations.rate(self._owner, id, valid)

    def stop(self) -> bool:
        """Stop the turn that runs in this object, and return whether one was running. Its reader
        gets an `error` with the code `stopped`, and `stream_end`."""
        if self._running is None:
            return False
        self._running.stop()
        return True

    # ---- one turn

    @property
    def _owner(self) -> ChatOwner:
        return ChatOwner.of(self._identity)

    @asynccontextmanager
    async def _run_turn(
        self,
        question: ChatMessage,
        options: TurnOptions,
        *,
        files: Sequence[KeptFile] = (),
        first: bool = False,
        again: bool = False,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        runtime = self._of.runtime()
        asked = question.id if again else question
        new = self._of.new_turn(self.id, asked, self.request, files)
        stored, request = False, None

        async def make_request(turn: StoredTurn) -> Request:
            nonlocal stored, request
            stored = True
            await self._of.keep_with(self._owner, turn, self.kept)
            request = await self._make_request(runtime, question, options, turn)
            return request

        try:
            async with self._of.run(runtime, self._owner, new, make_request) as recorder:
                self._running = recorder
                if first and request is not None:
                    # In the host's tasks: the title may take longer than the turn.
                    self._of.turns.tasks.start_soon(
                        write_title, runtime, self._of.store, request, question
                    )
                yield recorder
        except BaseException:
            # Not for a turn that was not even stored: another one of the chat may be under way.
            if first and stored and self._running is None:
                await self._forget_chat()
            raise
        finally:
            self._running = None

    async def _make_request(
        self, runtime: Runtime, question: ChatMessage, options: TurnOptions, turn: StoredTurn
    ) -> Request:
        """Return the request of a turn: the question, after the part of the history that the
        settings allow."""
        settings = runtime.app.settings_for(
            runtime.app.package(self.assistant_id), options=options
        ).settings.history
        conversations, owner = self._of.store.conversations, self._owner

        async def newest(limit: int) -> Sequence[ChatMessage]:
            if not question.parent or limit <= 0:
                return []
            return await conversations.path(owner, self.id, question.parent, limit)

        path = await newest(MOST_SUMMARISED if settings.summarise else settings.messages)
        omitted, before = split(path, most_messages=settings.messages, most_tokens=settings.tokens)
        asked, journal = await self._asked(question, settings.messages, settings.tokens)
        messages = (*before, Message(role="user", content=question.content))
        deciders = {each.assistant_id for each in question.decisions if each.assistant_id}
        return Request(
            # One to which a hook delegates the turn may have asked.
            assistant_id=next(iter(deciders), self.assistant_id),
            messages=await self._with_files(messages),
            options=options.model_copy(update={"chat_id": self.id}),
            identity=self._identity,
            conversation=KeptConversation(
                answer_id=turn.answer_id,
                sources=sources(path),
                newest=newest,
                omitted=omitted,
                can_ask=self.can_ask,
                decided=question.decisions,
                question=_question_of(path) if question.decisions else "",
                asked=asked,
                journal=journal,
                pictures=_ChatPictures(conversations, owner, self.id),
            ),
            contract=self.contract,
            turn_id=turn.id,
        )

    async def _asked(
        self, decision: ChatMessage, most_messages: int, most_tokens: int
    ) -> tuple[tuple[Message, ...], HookJournal]:
        """Return the messages that Create had when a hook asked the user, and the calls of the
        hooks; nothing unless one has asked."""
        if not decision.decisions:
            return (), ()
        answer = await self._find_message(decision.parent)
        pending = answer.answer.pending if answer.answer else ()
        if not pending or not pending[0].journal:
            return (), ()
        asked = await self._find_message(answer.parent)
        while asked.decisions:
            answer = await self._find_message(asked.parent)
            calls = answer.answer.pending if answer.answer else ()
            if not calls or not calls[0].journal:
                break  # no hook had asked: Create ran anew after the decision
            asked = await self._find_message(answer.parent)
        path: Sequence[ChatMessage] = ()
        if asked.parent and most_messages > 0:
            conversations = self._of.store.conversations
            path = await conversations.path(self._owner, self.id, asked.parent, most_messages)
        _, before = split(path, most_messages=most_messages, most_tokens=most_tokens)
        messages = (*before, Message(role="user", content=asked.content))
        return await self._with_files(messages), pending[0].journal

    async def _with_files(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages with the files that they refer to. Raises UnknownName for one that
        this chat does not have."""
        ids = [id for message in messages for id in file_ids(message.content)]
        if not ids:
            return tuple(messages)
        files = await self._of.store.conversations.files(self._owner, self.id, ids)
        return tuple(
            message.model_copy(update={"content": with_files(message.content or "", files)})
            for message in messages
        )

    async def file(self, id: str) -> KeptFile:
        """Return a file of this chat. Raises UnknownName."""
        return (await self._of.store.conversations.files(self._owner, self.id, [id]))[id]

    async def _store_chat(self) -> str:
        """Return the last message of the chat, and store the chat if it is new."""
        if self.is_kept:
            await self._end_lost_turn()
            return (await self._of.store.chats.chat(self._owner, self.id)).leaf
        self._of.turns.refuse_if_closed()
        at = milliseconds(self._of.runtime().now)
        chat = Chat(id=self.id, assistant_id=self.assistant_id, made_at=at, changed_at=at)
        await self._of.store.chats.make(self._owner, chat)
        self.is_kept = True
        return ""

    async def _end_lost_turn(self) -> None:
        """End a turn whose process no longer runs, so that the chat can continue."""
        turn = await self._of.store.conversations.running(self._owner, self.id)
        if turn is not None and has_ended(turn.lease_until, self._of.settings):
            await self._of.end_lost_turns()

    async def _forget_chat(self) -> None:
        """Remove a chat whose first turn could not begin."""
        with anyio.move_on_after(UNDOING_S, shield=True):
            self.is_kept = False
            await self._of.store.chats.delete(self._owner, self.id)

    async def _as_answer(self, question: ChatMessage) -> ChatMessage:
        """Return a message of the user as the decision that it is, behind a question of a hook."""
        answer, said = (await self._find_message(question.parent)).answer, question.content
        pending = answer.pending if answer else ()
        if not pending or not pending[0].question or not isinstance(said, str):
            return question
        try:
            decisions = _decisions(pending, True, said)
        except UsageError:  # none of the choices: a question of its own
            return question
        return question.model_copy(update={"decisions": decisions})

    async def _find_message(self, message: ChatMessage | str) -> ChatMessage:
        """Return a message of this chat. Raises UnknownName."""
        id = message if isinstance(message, str) else message.id
        found = await self._of.store.conversations.message(self._owner, id)
        if found.chat_id != self.id:
            raise UnknownName("message", id, ())
        return found

    def _make_question(
        self, message: ChatQuestion, parent: str
    ) -> tuple[ChatMessage, Sequence[KeptFile]]:
        """Return a question with references to its files, and these. Raises UsageError."""
        parts = not isinstance(message, (Message, Mapping))
        raw: Any = {"role": "user", "content": message} if parts else message
        settings = self._of.runtime().app.settings
        (valid,) = conversation([raw], settings.turns, settings.attachments)
        if valid.role != "user":
            raise UsageError(f"a question has the role 'user', not {valid.role!r}")
        content, files = without_files(valid.content or "")
        question = ChatMessage(
            id=message_id(),
            chat_id=self.id,
            parent=parent,
            role="user",
            content=content,
            made_at=milliseconds(self._of.runtime().now),
        )
        return question, files


@dataclass(frozen=True)
class _ChatPictures:
    """Implements `host.turn.context.PictureTexts` for one chat."""

    _conversations: Conversations
    _owner: ChatOwner
    _chat: str

    async def get(self, digest: str, /) -> str:
        return await self._conversations.picture_text(self._owner, self._chat, digest)

    async def put(self, digest: str, text: str, /) -> None:
        await self._conversations.keep_picture_text(self._owner, self._chat, digest, text)


def _decisions(
    pending: Sequence[PendingCall], approved: bool | Mapping[str, bool], reason: str
) -> tuple[Decision, ...]:
    """Return the decisions about calls. Raises UsageError for a call that is not one of them, or is
    missing."""
    ids = [each.call_id for each in pending]
    by_id = dict.fromkeys(ids, approved) if isinstance(approved, bool) else approved
    for id in by_id:
        if id not in ids:
            raise UsageError(f"no call {id[:80]!r} waits for approval", hint=", ".join(ids))
    if missing := [id for id in ids if id not in by_id]:
        raise UsageError(f"the call {missing[0]!r} needs a decision too")
    return tuple(
        Decision(
            **each.model_dump(exclude={"journal"}),
            approved=by_id[each.call_id],
            reason=_answer(each, reason) if each.question and by_id[each.call_id] else reason,
        )
        for each in pending
    )


def _answer(asked: PendingCall, words: str) -> str:
    """Return the answer to a question of a hook. Raises UsageError for none of its choices."""
    answer = words.strip() or "yes"
    if not asked.choices:
        return answer
    for choice in asked.choices:
        if choice.casefold() == answer.casefold():
            return choice
    raise UsageError(
        f"the answer {answer[:80]!r} is none of the choices",
        hint=f"`reason` is the answer: {', '.join(asked.choices)}",
    )


def _in_words(decisions: Sequence[Decision]) -> str:
    """Return decisions as the message of the user that every client shows."""
    if decisions[0].question:
        return decisions[0].reason or DECLINED
    words = [f"{'Approved' if each.approved else 'Refused'}: {each.name}" for each in decisions]
    reason = decisions[0].reason
    return "\n".join([*words, reason] if reason else words)


def _question_of(path: Sequence[ChatMessage]) -> str:
    """Return the last question of a path that is no decision."""
    asked = (each.text for each in reversed(path) if each.role == "user" and not each.decisions)
    return next(asked, "")


def _refuse_decision(question: ChatMessage) -> None:
    if question.decisions:
        raise UsageError(
            "a decision about calls is made once: they would run again",
            hint="ask again for what you want done",
        )

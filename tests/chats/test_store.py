"""The store of conversations, over SQLite and PostgreSQL: what one owner keeps, in branches, with
one turn at a time."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import psycopg
import pytest

from groundhook.core.app_settings import StoreSettings
from groundhook.core.errors import (
    ChatBusy,
    ConfigError,
    HostError,
    StorageError,
    UnknownName,
    UsageError,
)
from groundhook.core.types.chats import (
    Chat,
    ChatMessage,
    ChatOwner,
    Feedback,
    KeptAnswer,
    StoredTurn,
    TurnState,
)
from groundhook.host.chats.ports import (
    ChatChange,
    ChatPage,
    ChatStore,
    EndedTurn,
    FileLimits,
    KeptFile,
    NewTurn,
    RequestKey,
    chat_id,
    message_id,
    turn_id,
)
from groundhook.host.chats.storage.opening import open_storage
from groundhook.host.chats.store import chat_store
from groundhook.host.chats.tables import CHATS
from tests.chats.conftest import Place

ADA = ChatOwner("acme", "ada")
BOB = ChatOwner("acme", "bob")


async def chat(store: ChatStore, owner: ChatOwner = ADA, *, at: int = 1, title: str = "") -> Chat:
    new = Chat(id=chat_id(), assistant_id="docs", title=title, made_at=at, changed_at=at)
    return await store.chats.make(owner, new)


def question(chat: str, text: str = "What is it?", parent: str = "") -> ChatMessage:
    return ChatMessage(
        id=message_id(), chat_id=chat, parent=parent, role="user", content=text, made_at=1
    )


async def begin(
    store: ChatStore,
    chat: str,
    sent: ChatMessage | str,
    owner: ChatOwner = ADA,
    *,
    lease: int = 100,
    files: Sequence[KeptFile] = (),
    most: FileLimits | None = None,
) -> StoredTurn:
    return await store.conversations.begin(
        owner,
        NewTurn(
            id=turn_id(),
            chat_id=chat,
            question=sent,
            answer_id=message_id(),
            worker="w1",
            at=10,
            lease_until=lease,
            files=files,
            most_files=most or FileLimits(),
        ),
    )


async def end(
    store: ChatStore,
    turn: StoredTurn,
    text: str = "It is.",
    owner: ChatOwner = ADA,
    *,
    state: TurnState = "done",
    first: int = 1,
    log: bytes = b"",
    at: int = 20,
) -> bool:
    answer = ChatMessage(
        id=turn.answer_id,
        chat_id=turn.chat_id,
        parent=turn.question_id,
        role="assistant",
        content=text,
        answer=KeptAnswer(content=text, turn_id=turn.id),
        made_at=20,
    )
    ended = EndedTurn(id=turn.id, answer=answer, state=state, at=at, first=first, log=log)
    return await store.conversations.end(owner, ended)


async def exchange(
    store: ChatStore, chat: str, sent: ChatMessage | str, text: str = "It is."
) -> StoredTurn:
    turn = await begin(store, chat, sent)
    assert await end(store, turn, text)
    return turn


async def texts(store: ChatStore, chat: str, leaf: str = "") -> list[str]:
    return [message.text for message in await store.conversations.path(ADA, chat, leaf)]


async def test_a_chat_holds_its_questions_and_answers_in_order(store: ChatStore) -> None:
    kept = await chat(store)
    first = await exchange(store, kept.id, question(kept.id, "One?"), "1")
    await exchange(store, kept.id, question(kept.id, "Two?", first.answer_id), "2")

    assert await texts(store, kept.id) == ["One?", "1", "Two?", "2"]
    assert (await store.chats.chat(ADA, kept.id)).title == "One?"
    newest = await store.conversations.path(ADA, kept.id, "", 2)
    assert [message.text for message in newest] == ["Two?", "2"]


async def test_an_edit_and_a_regeneration_are_branches(store: ChatStore) -> None:
    kept = await chat(store)
    sent = question(kept.id, "One?")
    first = await exchange(store, kept.id, sent, "1")
    again = await exchange(store, kept.id, sent.id, "1, again")
    edited = await exchange(store, kept.id, question(kept.id, "Uno?"), "uno")

    assert await texts(store, kept.id) == ["Uno?", "uno"]
    assert await texts(store, kept.id, first.answer_id) == ["One?", "1"]
    path = await store.conversations.path(ADA, kept.id, again.answer_id)
    assert [message.siblings for message in path] == [
        (sent.id, edited.question_id),
        (first.answer_id, again.answer_id),
    ]
    change = ChatChange(chat_id=kept.id, at=30, leaf=first.answer_id)
    await store.chats.change(ADA, change)
    assert await texts(store, kept.id) == ["One?", "1"]


async def test_nothing_of_another_owner_exists(store: ChatStore) -> None:
    kept = await chat(store)
    sent = question(kept.id)
    turn = await exchange(store, kept.id, sent)
    running = await begin(store, kept.id, sent.id)
    await store.logs.append(ADA, running.id, 1, b"{}\n", 200)

    for attempt in (
        lambda: store.chats.chat(BOB, kept.id),
        lambda: store.chats.change(BOB, ChatChange(chat_id=kept.id, at=1, title="Mine")),
        lambda: store.chats.delete(BOB, kept.id),
        lambda: store.conversations.path(BOB, kept.id),
        lambda: store.conversations.path(BOB, kept.id, turn.answer_id),
        lambda: store.conversations.message(BOB, turn.answer_id),
        lambda: store.conversations.turn(BOB, turn.id),
        lambda: store.conversations.rate(BOB, turn.answer_id, Feedback(rating=1)),
        lambda: begin(store, kept.id, sent.id, BOB),
    ):
        with pytest.raises(UnknownName):
            await attempt()
    assert await store.conversations.running(BOB, kept.id) is None
    assert list(await store.logs.read(BOB, running.id)) == []
    assert not await store.logs.stop(BOB, running.id)
    assert (await store.logs.append(BOB, running.id, 2, b"{}\n", 300)).lost
    assert not await end(store, running, owner=BOB)
    await store.conversations.undo(BOB, running.id)
    assert (await store.chats.list(BOB, ChatPage())).chats == []
    assert (await store.conversations.turn(ADA, running.id)).lease_until == 200


async def test_owners_whose_ids_join_to_the_same_text_are_apart(store: ChatStore) -> None:
    kept = await chat(store, ChatOwner("a", "bc"))
    with pytest.raises(UnknownName):
        await store.chats.chat(ChatOwner("ab", "c"), kept.id)
    odd = ChatOwner("\x00", "\ud800'; drop table chats --")
    assert (await store.chats.chat(odd, (await chat(store, odd)).id)).assistant_id == "docs"


async def test_a_turn_is_found_by_the_key_of_its_request(store: ChatStore) -> None:
    kept = await chat(store)
    new = NewTurn(
        id=turn_id(),
        chat_id=kept.id,
        question=question(kept.id),
        answer_id=message_id(),
        worker="w1",
        at=10,
        lease_until=100,
        request=RequestKey("k1", "digest"),
    )
    turn = await store.conversations.begin(ADA, new)
    assert await store.conversations.requested(ADA, "k1") == (turn, "digest")
    assert await store.conversations.requested(BOB, "k1") is None
    assert await store.conversations.requested(ADA, "") is None
    await store.conversations.undo(ADA, turn.id)
    assert await store.conversations.requested(ADA, "k1") is None


async def test_a_chat_has_one_turn_at_a_time(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id))
    with pytest.raises(ChatBusy) as busy:
        await begin(store, kept.id, question(kept.id, "And this?"))
    assert busy.value.turn_id == turn.id
    assert await texts(store, kept.id) == ["What is it?"]
    assert await end(store, turn)
    assert not await end(store, turn, "twice", at=30)
    assert await texts(store, kept.id) == ["What is it?", "It is."]
    assert (await store.chats.chat(ADA, kept.id)).changed_at == 20


async def test_one_of_two_processes_that_begin_at_once_wins(place: Place) -> None:
    with place.store() as one, place.store() as other:
        kept = await chat(one)
        outcomes: list[str] = []

        async def run(store: ChatStore, text: str) -> None:
            try:
                await begin(store, kept.id, question(kept.id, text))
                outcomes.append("begun")
            except ChatBusy:
                outcomes.append("busy")

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(run, one if number % 2 else other, str(number))

        assert sorted(outcomes) == ["begun"] + ["busy"] * 5
        assert len(await one.conversations.path(ADA, kept.id)) == 1


async def test_a_turn_that_could_not_be_entered_leaves_nothing(store: ChatStore) -> None:
    kept = await chat(store)
    first = await exchange(store, kept.id, question(kept.id, "One?"))
    turn = await begin(store, kept.id, question(kept.id, "Two?", first.answer_id))
    await store.conversations.undo(ADA, turn.id)
    assert await texts(store, kept.id) == ["One?", "It is."]

    again = await begin(store, kept.id, first.question_id)
    await store.conversations.undo(ADA, again.id)
    assert await texts(store, kept.id, first.answer_id) == ["One?", "It is."]


async def test_a_question_belongs_to_its_chat(store: ChatStore) -> None:
    kept, other = await chat(store), await chat(store)
    turn = await exchange(store, other.id, question(other.id))
    for sent in (
        question(kept.id, parent=turn.answer_id),
        turn.question_id,
        turn.answer_id,
        "m_nothing",
    ):
        with pytest.raises(UnknownName):
            await begin(store, kept.id, sent)
    with pytest.raises(UnknownName, match="question"):
        await begin(store, other.id, turn.answer_id)
    assert await texts(store, kept.id) == []


async def test_logs_are_read_behind_an_event_and_renew_the_lease(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id))
    assert await store.logs.append(ADA, turn.id, 1, b"1\n2\n3\n", 200) is not None
    await store.logs.append(ADA, turn.id, 4, b"4\n", 300)
    assert await store.logs.stop(ADA, turn.id)
    assert (await store.logs.append(ADA, turn.id, 5, b"", 400)).stop
    assert list(await store.logs.read(ADA, turn.id, 3)) == [(4, b"4\n")]
    assert list(await store.logs.read(ADA, turn.id, 2)) == [(1, b"1\n2\n3\n"), (4, b"4\n")]
    await end(store, turn, first=5, log=b"5\n")
    assert [first for first, _ in await store.logs.read(ADA, turn.id)] == [1, 4, 5]
    assert (await store.logs.append(ADA, turn.id, 6, b"6\n", 500)).lost
    assert not await store.logs.stop(ADA, turn.id)


async def test_turns_outside_chats_have_logs_as_well(store: ChatStore) -> None:
    turns = [await begin(store, "", "") for _ in range(2)]
    for turn in turns:
        await store.logs.append(ADA, turn.id, 1, b"1\n", 200)
        assert await end(store, turn)
        assert (await store.conversations.turn(ADA, turn.id)).state == "done"
    assert (await store.chats.list(ADA, ChatPage())).chats == []


async def test_a_turn_whose_lease_ended_is_taken_over_once(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id), lease=100)
    assert list(await store.upkeep.lost(100, 500)) == []
    assert [(owner, lost.id) for owner, lost in await store.upkeep.lost(101, 500)] == [
        (ADA, turn.id)
    ]
    assert list(await store.upkeep.lost(102, 500)) == []
    assert await end(store, turn, "so f", state="lost")
    assert not await end(store, turn, "so f", state="lost")
    await exchange(store, kept.id, question(kept.id, "Again?", turn.answer_id))
    assert len(await texts(store, kept.id)) == 4


async def test_a_lease_of_a_clock_that_was_set_back_ends(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id), lease=10_000_000)
    now, renewed = 9_000_000, 9_015_000
    assert [lost.id for _, lost in await store.upkeep.lost(now, renewed)] == [turn.id]
    assert list(await store.upkeep.lost(now, renewed)) == []


async def test_an_answer_that_comes_after_its_turn_counted_as_lost_is_kept_whole(
    store: ChatStore,
) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id))
    assert await end(store, turn, "so f", state="lost", log=b"1\n2\n")
    assert await end(store, turn, "so far so good", first=1, log=b"1\n2\n3\n")
    assert await texts(store, kept.id) == ["What is it?", "so far so good"]
    assert (await store.conversations.turn(ADA, turn.id)).state == "done"
    assert not await end(store, turn, "again")


async def test_a_deleted_chat_takes_everything_with_it(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await begin(store, kept.id, question(kept.id))
    await store.logs.append(ADA, turn.id, 1, b"1\n", 200)
    await store.chats.delete(ADA, kept.id)
    assert not await end(store, turn)
    assert (await store.logs.append(ADA, turn.id, 2, b"2\n", 300)).lost
    assert list(await store.logs.read(ADA, turn.id)) == []
    with pytest.raises(UnknownName):
        await store.conversations.message(ADA, turn.question_id)


async def test_chats_are_listed_page_by_page_with_the_last_changed_first(
    store: ChatStore,
) -> None:
    ids = [(await chat(store, at=number // 2, title=f"Tea {number}")).id for number in range(7)]
    seen: list[str] = []
    after = ""
    while True:
        listing = await store.chats.list(ADA, ChatPage(limit=3, after=after))
        seen += [each.id for each in listing.chats]
        if not (after := listing.next):
            break
    assert sorted(seen) == sorted(ids)
    assert seen[0] == ids[6]
    with pytest.raises(UsageError, match="`next` of a page"):
        await store.chats.list(ADA, ChatPage(after="nonsense"))


async def test_a_title_may_replace_one_title_alone(store: ChatStore) -> None:
    kept = await chat(store, title="Why?")

    async def renamed(title: str, instead_of: str) -> str:
        change = ChatChange(chat_id=kept.id, at=9, title=title, instead_of=instead_of)
        return (await store.chats.change(ADA, change)).title

    assert await renamed("By a model", "Why?") == "By a model"
    assert await renamed("By another", "Why?") == "By a model"


async def test_titles_are_searched_as_plain_text(store: ChatStore) -> None:
    for title in ("100 % ÄPFEL", "a_b", "aXb", "!"):
        await chat(store, title=title)

    async def titles(words: str) -> list[str]:
        return [each.title for each in (await store.chats.list(ADA, ChatPage(words=words))).chats]

    assert await titles("äpfel") == ["100 % ÄPFEL"]
    assert await titles("a_b") == ["a_b"]
    assert await titles("% ") == ["100 % ÄPFEL"]
    assert await titles("!") == ["!"]


async def test_archived_chats_are_listed_apart(store: ChatStore) -> None:
    kept = await chat(store)
    await store.chats.change(ADA, ChatChange(chat_id=kept.id, at=5, archived=True))
    assert (await store.chats.list(ADA, ChatPage())).chats == []
    assert (await store.chats.list(ADA, ChatPage(archived=True))).chats[0].archived


async def test_purging_removes_what_was_not_changed_since(store: ChatStore) -> None:
    old, fresh = await chat(store, at=1), await chat(store, at=50)
    busy = await chat(store, BOB, at=1)
    running = await begin(store, busy.id, question(busy.id), BOB)
    assert list(await store.upkeep.purge(chats_before=40, logs_before=0)) == [(ADA, old.id)]
    listed = await store.upkeep.every(ChatPage())
    assert [(each.owner, each.chat.id) for each in listed] == [(ADA, fresh.id), (BOB, busy.id)]
    assert [each.messages for each in listed] == [0, 1]
    assert [each.chat.id for each in await store.upkeep.every(ChatPage(), BOB)] == [busy.id]
    assert await store.upkeep.owners_of(busy.id) == [BOB]
    await end(store, running, owner=BOB, log=b"1\n")
    await store.upkeep.purge(chats_before=0, logs_before=40)
    assert list(await store.logs.read(BOB, running.id)) == []


async def test_feedback_is_kept_with_the_answer(store: ChatStore) -> None:
    kept = await chat(store)
    turn = await exchange(store, kept.id, question(kept.id))
    given = Feedback(rating=-1, comment="\x00 wrong", about=("#ref:a1b2",))
    await store.conversations.rate(ADA, turn.answer_id, given)
    assert (await store.conversations.message(ADA, turn.answer_id)).feedback == given
    with pytest.raises(UnknownName):
        await store.conversations.rate(ADA, turn.question_id, given)


async def test_rated_answers_of_all_owners_are_listed(store: ChatStore) -> None:
    kept, other = await chat(store), await chat(store, BOB)
    await exchange(store, kept.id, question(kept.id))
    turn = await exchange(store, kept.id, question(kept.id))
    bobs = await begin(store, other.id, question(other.id), BOB)
    assert await end(store, bobs, owner=BOB)
    assert await store.upkeep.rated() == []
    await store.conversations.rate(ADA, turn.answer_id, Feedback(rating=-1))
    await store.conversations.rate(BOB, bobs.answer_id, Feedback(rating=1))
    found = await store.upkeep.rated()
    assert {(owner, answer.id) for owner, answer in found} == {
        (ADA, turn.answer_id),
        (BOB, bobs.answer_id),
    }


async def test_any_content_can_be_kept(store: ChatStore) -> None:
    kept = await chat(store)
    odd = "\x00 \ud800 \u2028 😀 %s :id"
    sent = question(kept.id, odd)
    turn = await begin(store, kept.id, sent)
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    answer = KeptAnswer(content=odd, data={"nan": float("nan"), "deep": deep})
    message = ChatMessage(
        id=turn.answer_id,
        chat_id=kept.id,
        parent=sent.id,
        role="assistant",
        content=odd,
        answer=answer,
    )
    ended = EndedTurn(id=turn.id, answer=message, state="done", at=1)
    assert await store.conversations.end(ADA, ended)
    shown = "\x00 \ufffd \u2028 😀 %s :id"
    assert await texts(store, kept.id) == [shown, shown]
    assert (await store.chats.chat(ADA, kept.id)).title == "\u2028 😀 %s :id".strip()


async def test_ids_that_no_row_can_have_are_unknown(store: ChatStore) -> None:
    for id in ("", "\x00", "é", "a b", "x" * 10_000):
        with pytest.raises(UnknownName):
            await store.chats.chat(ADA, id)


async def test_programs_may_choose_ids_and_two_owners_the_same(store: ChatStore) -> None:
    for owner in (ADA, BOB):
        named = Chat(id="ticket-17", assistant_id="docs", title=owner.user)
        await store.chats.make(owner, named)
        with pytest.raises(UsageError, match="already"):
            await store.chats.make(owner, named)
        with pytest.raises(UsageError, match="cannot be the id"):
            await store.chats.make(owner, Chat(id="a b", assistant_id="docs"))
    turns = [await begin(store, "ticket-17", question("ticket-17"), each) for each in (ADA, BOB)]
    assert await end(store, turns[1], owner=BOB)
    await store.chats.delete(ADA, "ticket-17")
    assert (await store.chats.chat(BOB, "ticket-17")).title == "bob"
    assert len(await store.conversations.path(BOB, "ticket-17")) == 2
    assert len(await store.upkeep.owners_of("ticket-17")) == 1


async def test_a_long_title_is_cut_at_a_word(store: ChatStore) -> None:
    kept = await chat(store)
    await exchange(store, kept.id, question(kept.id, "  How\nlong " + "is the tea steeped " * 9))
    title = (await store.chats.chat(ADA, kept.id)).title
    assert title == "How long is the tea steeped is the tea steeped is the tea…"


async def test_what_was_kept_is_there_when_the_store_is_opened_again(place: Place) -> None:
    with place.store() as store:
        kept = await chat(store)
        await exchange(store, kept.id, question(kept.id))
    with place.store() as store:
        assert await texts(store, kept.id) == ["What is it?", "It is."]
    with pytest.raises(StorageError, match="closed"):
        await store.chats.chat(ADA, kept.id)


async def test_a_newer_store_is_refused(place: Place) -> None:
    with place.store() as store:
        await chat(store)
    newer = "update parts set version = 99"
    if place.settings.url:
        with psycopg.connect(place.settings.url) as db:
            db.execute(newer)
    else:
        with sqlite3.connect(place.file) as file:
            file.execute(newer)
        file.close()
    with place.store() as store, pytest.raises(StorageError, match="newer version of Groundhook"):
        await chat(store)


async def test_the_file_is_private_and_appears_with_the_first_use(tmp_path: Path) -> None:
    place = Place(StoreSettings(), tmp_path / "chats.sqlite")
    with place.store() as store:
        assert not place.file.exists()
        await chat(store)
    assert stat.S_IMODE(place.file.stat().st_mode) == 0o600


@pytest.mark.parametrize("url", ["sqlite:///x", "app_db", "http://u:secret@[/x", "mysql://x/y"])
def test_another_url_is_refused_without_showing_it(url: str, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"store\.url") as refused,
        open_storage(StoreSettings(url=url), tmp_path / "x", [CHATS], noun="the chats"),
    ):
        pass
    assert url not in str(refused.value)


async def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    settings = StoreSettings(url="postgresql://u:secret@127.0.0.1:1/app")
    with (
        open_storage(settings, tmp_path / "x", [CHATS], noun="the chats") as storage,
        pytest.raises(HostError, match=r"127\.0\.0\.1:1/app") as failed,
    ):
        await chat(chat_store(storage))
    assert "secret" not in str(failed.value)


async def test_files_are_of_one_chat_bounded_for_a_person_and_removed_with_it(
    store: ChatStore,
) -> None:
    tea = KeptFile(id="f_tea", name="tea.txt", media_type="text/plain", body=b"tea \x00\xff")
    cup = KeptFile(id="f_cup", name="cup.txt", media_type="", body=b"cups")
    most, conversations = FileLimits(2, 100), store.conversations
    first, second, theirs = await chat(store), await chat(store), await chat(store, BOB)
    turn = await begin(store, first.id, question(first.id), files=[tea], most=most)
    assert await conversations.files(ADA, first.id, ["f_tea", "f_tea"]) == {"f_tea": tea}
    for owner, other in ((ADA, second.id), (BOB, first.id), (BOB, theirs.id)):
        with pytest.raises(UnknownName):
            await conversations.files(owner, other, ["f_tea"])
    for few, words in ((FileLimits(1, 100), "at most 1 files"), (FileLimits(2, 9), "MB of files")):
        with pytest.raises(UsageError, match=words):
            await begin(store, second.id, question(second.id), files=[cup], most=few)
    await begin(store, second.id, question(second.id), files=[cup], most=most)
    await conversations.undo(ADA, turn.id)
    with pytest.raises(UnknownName):
        await conversations.files(ADA, first.id, ["f_tea"])
    await store.chats.delete(ADA, second.id)
    await begin(store, first.id, question(first.id), files=[tea, cup], most=most)


async def test_descriptions_of_pictures_are_of_one_chat_bounded_and_removed_with_it(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundhook.host.chats.attachments.MOST_PICTURE_TEXTS", 2)
    first, second, kept = await chat(store), await chat(store), store.conversations
    for digest, text in (("d1", "tea\0"), ("d1", "late"), ("d2", "cup"), ("d3", "too many")):
        await kept.keep_picture_text(ADA, first.id, digest, text)
    found = [await kept.picture_text(ADA, first.id, each) for each in ("d1", "d2", "d3")]
    assert found == ["tea", "cup", ""]
    assert await kept.picture_text(ADA, second.id, "d1") == ""
    assert await kept.picture_text(BOB, first.id, "d1") == ""
    await kept.keep_picture_text(BOB, first.id, "d4", "not his chat")
    await store.chats.delete(ADA, first.id)
    await kept.keep_picture_text(ADA, first.id, "d1", "removed meanwhile")
    assert await kept.picture_text(ADA, first.id, "d1") == ""
    assert await kept.picture_text(BOB, first.id, "d4") == ""

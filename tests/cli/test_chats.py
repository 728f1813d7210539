"""`groundhook chats`: what is kept is listed, shown as it was live, exported and removed."""

from __future__ import annotations

import json
from pathlib import Path

import anyio

from groundhook import open_host
from tests.cli.conftest import Groundhook


def talk(groundhook: Groundhook, *arguments: str) -> str:
    done = groundhook("chat", "shop", "--json", *arguments, stdin="Is there a red pen?\n")
    assert done.code == 0
    return str(done.lines[0]["chat_id"])


def test_what_is_kept_is_shown_as_it_was_live(groundhook: Groundhook) -> None:
    live = groundhook("chat", "shop", stdin="Is there a red pen?\n").out
    (only,) = groundhook("chats", "list", "--json").lines
    shown = groundhook("chats", "show", only["id"]).out
    assert only["title"] == "Is there a red pen?"
    assert shown.startswith("› Is there a red pen?\n")
    sources = live[live.index("The red pen") :].strip()
    assert sources in shown


def test_conversations_are_listed_with_their_owners(groundhook: Groundhook) -> None:
    assert groundhook("chats", "list").out == "No conversations are kept.\n"
    talk(groundhook, "--user", "ada", "--tenant", "acme")
    talk(groundhook, "--user", "bob")
    everyone = groundhook("chats", "list").out
    assert "Is there a red pen?" in everyone
    assert "ada" in everyone
    assert "bob" in everyone
    (only,) = groundhook("chats", "list", "--user", "bob", "--json").lines
    assert (only["user"], only["messages"], only["assistant_id"]) == ("bob", 2, "shop")


def test_a_conversation_is_exported_with_footnotes(groundhook: Groundhook) -> None:
    id = talk(groundhook)
    markdown = groundhook("chats", "export", id).out
    assert markdown.startswith("# Is there a red pen?\n")
    assert "The red pen is cheap [^1], the blue one is not #ref:zz9z." in markdown
    assert "[^1]: " in markdown
    (whole,) = groundhook("chats", "export", id, "--format", "json").lines
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]


def test_old_conversations_are_removed(groundhook: Groundhook) -> None:
    talk(groundhook)
    assert groundhook("chats", "purge", "--older-than", "1").out == "Removed no conversations.\n"
    assert groundhook("chats", "purge", "--older-than", "0").out == "Removed 1 conversation.\n"
    assert groundhook("chats", "list", "--json").lines == []


def test_the_same_id_of_two_users_needs_a_user(groundhook: Groundhook) -> None:
    for user in ("ada", "bob"):
        groundhook("dev", "shop", "--user", user, "--chat", "c1", stdin="Is there a red pen?\n")
    refused = groundhook("chats", "show", "c1")
    assert refused.code == 1
    assert "2 chats 'c1', of the users 'ada', 'bob'" in refused.err
    assert groundhook("chats", "show", "c1", "--user", "ada").code == 0
    assert "no chat 'nothing'" in groundhook("chats", "show", "nothing").err


def test_a_chat_of_another_user_is_not_begun_anew(groundhook: Groundhook) -> None:
    local, nobody = talk(groundhook, "--user", "local", "--tenant", "a b"), talk(groundhook)
    for message in (["And the blue one?"], []):
        refused = groundhook("chat", "shop", *message, "--chat", local, stdin="And the blue one?\n")
        assert refused.code == 1
        assert f"the chat '{local}' belongs to another user" in refused.err.replace("\n", " ")
        assert "`--tenant 'a b' --user local` continues it" in refused.err.replace("\n", " ")
        other = groundhook("chat", "shop", *message, "--chat", nobody, "--user", "eve")
        assert "without --user and --tenant it continues" in other.err.replace("\n", " ")
    going_on = groundhook(
        "chat", "shop", "The red pen?", "--chat", local, "--user", "local", "--tenant", "a b"
    )
    assert going_on.code == 0
    (kept,) = groundhook("chats", "list", "--user", "local", "--tenant", "a b", "--json").lines
    assert kept["messages"] == 4


async def rate(shop: Path, *ratings: int) -> None:
    """Asks the shop once for each rating, the later ones as follow-ups, and rates the answers."""
    async with open_host(shop) as host, host.chat("shop", identity={"user_id": "ada"}) as chat:
        for pen, rating in zip(("red", "blue"), ratings, strict=True):
            with anyio.fail_after(60):
                async with chat.send(f"Is there a {pen} pen?") as events:
                    assert [event.type async for event in events][-1] == "stream_end"
            comment = "the price is wrong" if rating < 0 else ""
            answer = (await chat.messages())[-1]
            await chat.rate(answer, {"rating": rating, "comment": comment})


async def test_unhelpful_answers_become_rows_of_a_suite(shop: Path, groundhook: Groundhook) -> None:
    await rate(shop, 1, -1)
    suite = "assistants/shop/tests/kept.suite.jsonl"
    added = await anyio.to_thread.run_sync(lambda: groundhook("chats", "suite", suite))
    assert (added.code, added.out.splitlines()[-1]) == (0, f"Added 1 row to {suite}.")
    (row,) = map(json.loads, (shop / suite).read_text(encoding="utf-8").splitlines())
    assert row["question"] == "Is there a blue pen?"
    assert [each["role"] for each in row["messages"]] == ["user", "assistant"]
    assert row["note"] == "not helpful: the price is wrong"
    assert "ada" not in json.dumps(row)
    again = await anyio.to_thread.run_sync(lambda: groundhook("chats", "suite", suite))
    assert again.out == f"Added no rows to {suite}.\n"
    ran = await anyio.to_thread.run_sync(lambda: groundhook("eval", suite))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 of 1 turn passed")

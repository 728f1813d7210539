"""Assembles the store of conversations over an open storage (`host.chats.storage`)."""

from __future__ import annotations

from groundhook.host.chats.chats import SqlChats
from groundhook.host.chats.conversations import SqlConversations
from groundhook.host.chats.logs import SqlTurnLogs
from groundhook.host.chats.ports import ChatStore
from groundhook.host.chats.storage.sql import Storage, Threads
from groundhook.host.chats.upkeep import SqlUpkeep


def chat_store(storage: Storage) -> ChatStore:
    """Return the store over an open storage, which must have the part `tables.CHATS`."""
    threads = Threads(storage)
    return ChatStore(
        chats=SqlChats(threads),
        conversations=SqlConversations(threads),
        logs=SqlTurnLogs(threads),
        upkeep=SqlUpkeep(threads),
        times=threads.times,
    )

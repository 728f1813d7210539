"""How a part registers what is closed with the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

OnClose = Callable[[Callable[[], Awaitable[None]]], object]
"""Registers an async function that is awaited when the host closes."""

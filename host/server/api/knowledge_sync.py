"""The syncs of toolkits over HTTP, for those who keep collections: their state, and one that is
begun now. Counts and reasons, which tell of records of all tenants, are for those who reach
everything of the app."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.responses import Response, StreamingResponse

from groundhook.core.errors import HostError, UnknownName
from groundhook.core.types.sync import SyncProgress, SyncStatus
from groundhook.core.types.toolkit_listing import parse_listed_toolkits
from groundhook.host.server.api.knowledge import json_answer
from groundhook.host.server.api.steps import StepLines, lines_of
from groundhook.host.server.problems import Refused
from groundhook.host.server.serving import Call
from groundhook.host.server.turns.sse import JSON_LINES


async def list_syncs(call: Call) -> Response:
    """Return the syncs of the toolkits that the caller may sync, with their state."""
    syncs = call.serving.host.syncs
    states = [await syncs.status(id) for id in syncs.ids() if _may_sync(call, id)]
    return json_answer({"syncs": [_state(call, each) for each in states]})


async def sync(call: Call) -> Response:
    """Sync a toolkit now; a line of JSON for each progress, then the result. It ends when the
    client leaves, and the next one continues it."""
    syncs = call.serving.host.syncs
    id = call.request.path_params["toolkit"]
    if id not in syncs.ids() or not _may_sync(call, id):
        raise UnknownName("toolkit", id[:200], ())
    call.admit_stream()
    await call.serving.limits.count("turns", call.caller.owner)
    if (await syncs.status(id)).running:
        raise Refused("sync_busy", f"a sync of {id!r} is already running")

    async def work(steps: StepLines) -> None:
        def show(progress: SyncProgress) -> None:
            counts = {"done": progress.done, "total": progress.total}
            steps.show({"type": "progress", "mode": progress.mode, **_of_all(call, counts)})

        report = await syncs.run(id, progress=show)
        told = asdict(report) | {"notes": [_told(call, note) for note in report.notes]}
        await steps.tell({"type": "done", "toolkit": id, **_of_all(call, told)})

    return StreamingResponse(lines_of(call, work), media_type=JSON_LINES)


def _may_sync(call: Call, toolkit: str) -> bool:
    """Return whether an assistant of the caller lists the toolkit, or the caller reaches all."""
    if call.caller.reaches_all:
        return True
    host = call.serving.host
    for assistant in call.serving.offered(call.caller):
        with suppress(HostError):
            for entry in host.settings(assistant).tools:
                for listed in parse_listed_toolkits(entry):
                    with suppress(HostError):
                        if host.app.resolve_toolkit(assistant, listed.name).id == toolkit:
                            return True
    return False


def _state(call: Call, status: SyncStatus) -> Mapping[str, Any]:
    return {
        "toolkit": status.toolkit,
        "every": status.every,
        "running": bool(status.running),
        "interrupted": status.interrupted,
        "succeeded_at": status.succeeded_at,
        "failed_at": status.failed_at,
        **_of_all(call, {"records": status.records, "error": _told(call, status.error)}),
    }


def _of_all(call: Call, told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what tells of all tenants, for a caller who reaches everything."""
    return told if call.caller.reaches_all else {}


def _told(call: Call, text: str) -> str:
    """Return a reason without the folder of the server."""
    return text.replace(f"{call.serving.host.app.root}/", "")

"""How long the turns of a person take while another one attacks the same server: questions, host
calls, answers of models and of services that are pumped up to their limits, one after the other.

    make bench NAME=neighbours

The person asks one ordinary question after the other, from a process of its own. The floor is the
time of the same turns while nobody attacks. The server's processes, the attacker and the person
share the cores of one machine. Prints JSON lines {"figure", "value", "unit", "floor", "floor_is",
"ratio"} on standard output.
"""

from __future__ import annotations

import json
import select
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import httpx

from bench import stops
from bench.figures import figure, quantile
from bench.stops_served import KEY, beside, campaign

UNITS = ("a ", "```a\n")
ALONE_S = 10.0


def asked(process: subprocess.Popen[str]) -> list[float]:
    """Return the seconds of each of its turns since the last time."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    taken: list[float] = json.loads(process.stdout.readline())
    return taken


def ask(url: str) -> None:
    """Ask without end. For each line of standard input print the seconds of the turns since the
    last."""
    headers = {"authorization": f"Bearer {KEY}", "accept": "application/json"}
    taken: list[float] = []
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        while True:
            began = time.perf_counter()
            client.post("/api/turns", json={"assistant": "open", "text": stops.ASK, "search": True})
            taken.append(time.perf_counter() - began)
            if select.select([sys.stdin], [], [], 0.02)[0] and sys.stdin.readline():
                print(json.dumps(taken), flush=True)
                taken = []


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        campaign(Path(folder), stops.notes(UNITS)) as made,
        beside("bench.neighbours", str(made.client.base_url)) as person,
    ):
        asked(person)
        time.sleep(ALONE_S)
        alone = asked(person)
        for unit in UNITS:
            for attack in (stops.questions, stops.host_calls, stops.answers, stops.services):
                attack(made, unit)
        attacked = asked(person)
    for name, of in (
        ("p50", statistics.median),
        ("p95", partial(quantile, share=0.95)),
        ("the longest", max),
    ):
        figure(
            f"a turn while another person attacks, {name} of {len(attacked)}",
            1000 * of(attacked),
            "ms",
            1000 * of(alone),
            "while nobody attacks",
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(sys.argv[1])
    else:
        main()

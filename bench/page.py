"""The page in a browser: its first paint, a question, a long answer, and a chat of 500 messages.

    python -m bench.page

Needs Chromium and playwright, as `make test-browser` does. The server is warm and on loopback. The
floor of a page is a line of text of the same server; that of the other figures is what docs/page.md
promises. Browsers report tasks of 50 ms and more: 0 means that there was none.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.figures import figure
from tests.page.conftest import Visit, installed, launched, make_app, visiting
from tests.server.conftest import LOCAL, serving

TOKENS, A_SECOND = 5000, 200
MESSAGES = 500
TIMES = 7
MODEL = "connectors/streamed.conn.yao"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
# The longest task of the page since the script ran, in milliseconds.
LONG_TASKS = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: 'longtask' });
"""
# From Enter to the first thing that the server says of the turn.
FIRST_EVENT = """
window.first = null;
const root = document.querySelector('groundhook-chat').shadowRoot;
root.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') window.asked = performance.now();
}, true);
new MutationObserver(() => {
  if (window.asked && window.first === null && root.querySelector('.lane, .prose p'))
    window.first = performance.now() - window.asked;
}).observe(root, { childList: true, subtree: true });
"""
OPENING = """async (chat) => {
  const began = performance.now();
  location.hash = `#a=tea&c=${chat}`;
  const shown = () => document.querySelector('groundhook-chat')?.shadowRoot;
  while (!shown()?.querySelector('article.turn')) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


@contextmanager
def model() -> Iterator[str]:
    """A language model's endpoint that streams words at a constant rate; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            began = time.monotonic()
            for n in range(TOKENS):
                time.sleep(max(0.0, began + n / A_SECOND - time.monotonic()))
                text = f"word{n}" + (".\n\n" if n % 60 == 59 else " ")
                self.send({"index": 0, "delta": {"content": text}, "finish_reason": None})
            self.send({"index": 0, "delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

        def send(self, choice: Any) -> None:
            line = {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(line).encode() + b"\n\n")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def paint(visit: Visit, address: str) -> float:
    """Return the milliseconds to the first paint of an address with something on it."""
    visit.page.goto("about:blank")
    visit.page.goto(address)
    visit.page.wait_for_function(f"({PAINT}) !== null")
    return float(visit.page.evaluate(PAINT))


def first_event(visit: Visit) -> float:
    """Return the milliseconds from Enter to the first lane or words of an answer."""
    visit.open("tea")
    visit.page.evaluate(FIRST_EVENT)
    visit.ask("Which teas are there?")
    return float(visit.page.evaluate("window.first"))


def long_answer(visit: Visit) -> float:
    """Return the longest task of the page, in milliseconds, while a long answer streams."""
    visit.open("streamed")
    visit.page.evaluate(LONG_TASKS)
    visit.page.context.set_default_timeout(120_000)
    visit.ask("Tell me all.")
    return float(visit.page.evaluate("window.longest"))


def long_chat(visit: Visit) -> str:
    """Make a chat of MESSAGES messages, and return its id."""
    request, head = visit.context.request, {"sec-fetch-site": "same-origin"}
    made = request.post(f"{visit.url}/api/chats", data={"assistant": "tea"}, headers=head)
    chat = str(made.json()["id"])
    for _ in range(MESSAGES // 2):
        turns = f"{visit.url}/api/chats/{chat}/turns"
        request.post(turns, data={"text": "Which teas are there?"}, headers=head).body()
    return chat


def opening(visit: Visit, chat: str) -> float:
    """Return the milliseconds from a click on a chat to its last messages."""
    visit.open("tea")
    return float(visit.page.evaluate(OPENING, chat))


def main() -> None:
    path = installed()
    if path is None:
        raise SystemExit("no Chromium is installed: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="groundhook-bench-") as folder, model() as address:
        app = make_app(Path(folder) / "app", "http://localhost:1")
        options = {"model": "m", "host": address, "key": "none"}
        (app / MODEL).write_text(json.dumps({"type": "openai", "options": options}))
        (app / "assistants/streamed").mkdir()
        about = {"name": "Streamed", "connector": "streamed"}
        (app / "assistants/streamed/package.yao").write_text(json.dumps(about))
        with (
            serving(app) as served,
            launched(path) as browser,
            visiting(browser, served.url) as visit,
        ):
            visit.sign_in(LOCAL)
            paint(visit, f"{served.url}/#a=tea")
            empty = [paint(visit, f"{served.url}/assets/none") for _ in range(TIMES)]
            own = [paint(visit, f"{served.url}/#a=tea") for _ in range(TIMES)]
            figure(
                "first paint of the page, p50",
                statistics.median(own),
                "ms",
                statistics.median(empty),
                "an error of the server as text",
            )
            events = [first_event(visit) for _ in range(TIMES)]
            figure(
                "Enter to the first event of a turn that is kept, p50",
                statistics.median(events),
                "ms",
                150,
                "what is promised",
            )
            chat = long_chat(visit)
            opened = [opening(visit, chat) for _ in range(TIMES)]
            figure(
                f"a chat of {MESSAGES} messages opens, p50",
                statistics.median(opened),
                "ms",
                300,
                "what is promised",
            )
            figure(
                f"longest task while {TOKENS:,} tokens come, {A_SECOND} a second",
                long_answer(visit),
                "ms",
                50,
                "what is promised",
            )


if __name__ == "__main__":
    main()

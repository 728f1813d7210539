"""The page in Debian's Chromium, over a small app. Where no browser is installed its tests are
skipped. Every test fails whose page reports an error, breaks its policy, or asks another origin."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from groundhook.host.app.opening import open_host
from tests.loops import run as run_apart
from tests.server.conftest import (
    APP,
    LOCAL,
    OTHER,
    READER,
    Served,
    load_rows,
    serve,  # noqa: F401 - a fixture
    serving,
    write,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)
SECRET = "a secret of two servers, long enough"

HOSTILE = (
    "<script>window.ran = 1</script> <img src=https://evil.example/i.png onerror='window.ran = 1'>"
    " [run](javascript:window.ran=1) [leave](https://evil.example/?q=secret)"
    " ![i](https://evil.example/i.png) {ref:0} #ref:zz99"
)
PROSE = (
    "Some **words** first. {ref:0}\n\n| Tea | Minutes |\n|---|--:|\n| Assam | 4 |\n| Sencha | 10 |\n"
    "| =HYPERLINK(1) | 2 |\n\n```python\nprint('tea')\n```\n\n> Quoted\n\n1. one\n2. two\n\nHow long? {ref:1}"
)
LONG = "\n\n".join(
    f"Paragraph {n} has a few words that are told one after another." for n in range(400)
)


def _scripted(*texts: str) -> str:
    script = [
        {"text": text, "times": 0 if n == len(texts) - 1 else 1} for n, text in enumerate(texts)
    ]
    return json.dumps({"type": "scripted", "options": {"script": script}})


def _assistant(name: str, connector: str, **more: Any) -> str:
    search = {"db": {"models": ["tea"]}, "search": {"db": True}}
    return json.dumps({"name": name, "connector": connector, **search, **more})


FILES = {
    **{name: text for name, text in APP.items() if not name.startswith("assistants/")},
    "connectors/prose.conn.yao": _scripted(PROSE),
    "connectors/hostile.conn.yao": _scripted(HOSTILE),
    "connectors/long.conn.yao": _scripted(LONG),
    "connectors/rtl.conn.yao": _scripted("שלום עולם, זו תשובה."),
    "connectors/extractive.conn.yao": '{"type": "extractive"}',
    "assistants/tea/package.yao": _assistant(
        "Tea",
        "prose",
        placeholder={
            "title": "All about tea",
            "description": "Answers cite the list of teas.",
            "prompts": ["Which teas are there?", "How long does Assam take?"],
        },
    ),
    "assistants/hostile/package.yao": _assistant("<img src=x onerror='window.ran = 1'>", "hostile"),
    "assistants/late/package.yao": _assistant("Late", "slow"),
    "assistants/fails/package.yao": _assistant("Fails", "fails"),
    "assistants/long/package.yao": _assistant("Long", "long"),
    "assistants/rtl/package.yao": _assistant("תה", "rtl"),
    "assistants/notes/package.yao": json.dumps(
        {
            "name": "Notes",
            "connector": "extractive",
            "kb": {"collections": ["notes"]},
            "search": {"kb": True},
        }
    ),
    "assistants/cook/package.yao": json.dumps(
        {
            "name": "Cook",
            "connector": "extractive",
            "kb": {"collections": ["recipes"]},
            "search": {"kb": True},
        }
    ),
    "connectors/orders.conn.yao": json.dumps(
        {
            "type": "scripted",
            "options": {
                "script": [
                    {"tool_calls": [{"name": "cancel", "arguments": {"order": "<b>3</b>"}}]},
                    {"text": "It is cancelled.", "times": 0},
                ]
            },
        }
    ),
    "assistants/orders/package.yao": '{"name": "Orders", "connector": "orders"}',
    "assistants/orders/src/tools.ts": (
        """
        export const schemas = { cancel: {
          description: "Cancel an order", confirm: true,
          type: "object", properties: { order: { type: "string" } }, required: ["order"] } };
        export function cancel({ order }: { order: string }) { return "cancelled " + order; }
        """
    ),
    "assistants/years/package.yao": '{"name": "Years"}',
    "assistants/years/index.ts": (
        """
        function Create(ctx) {
          console.warn("asks in assistants/years/index.ts:3 for <b>a year</b>");
          const year = ctx.Ask("Of which year? <b>", ["2023", "<i>2024</i>"]);
          return { answer: `Of ${year}, says ${ctx.Ask("Who says so?")}.` };
        }
        """
    ),
    "models/herb.mod.yao": json.dumps(
        {
            "name": "Herb",
            "table": {"name": "herb"},
            "columns": [{"name": "id", "type": "ID"}, {"name": "name", "type": "string"}],
            "values": [{"id": n, "name": f"Herb {n}"} for n in range(1, 61)],
        }
    ),
    "assistants/herbs/package.yao": json.dumps(
        {
            "name": "Herbs",
            "connector": "extractive",
            "db": {"models": ["herb"]},
            "search": {"db": True},
        }
    ),
    "kb/notes.kb.yao": '{ "name": "Notes" }',
    "kb/recipes.kb.yao": json.dumps(
        {
            "name": "Recipes",
            "embedding": {"provider": "hash"},
            "fields": {
                "preview": "text",
                "made": "boolean",
                "tags": {"type": "keyword", "facetable": True},
                "written": "datetime",
                "supersedes": "keyword",
                "links": "keyword",
            },
        }
    ),
    "toolkits/recipes.toolkit.yao": json.dumps(
        {
            "type": "memory",
            "owner": "app",
            "collections": {"all": "recipes"},
            "source": {"file": "records"},
        }
    ),
    "records/all.jsonl": (
        '{"id": 1, "collection": "all", "title": "Mint <b>", "content": "Mint is cut in June."}\n'
    ),
    "notes/tea <b>.md": (
        "# Tea <b>\n\nBlack tea takes boiling water and four minutes.\n\n"
        "# Coffee\n\nCoffee takes three minutes.\n"
    ),
}
SERVER = {
    "limits": {"turns_per_minute": 10_000, "requests_per_minute": 100_000},
    "auth": {
        "keys": [
            {"name": "other", "key": OTHER, "user": "other"},
            {"name": "reader", "key": READER, "user": "reader", "scopes": ["chat"]},
        ],
        "jwt": [{"issuer": "shop", "audience": "groundhook", "secret": SECRET}],
    },
}


@dataclass
class Shop:
    """A page of another site, which a test sets with the head that it has."""

    url: str = ""
    body: str = ""
    policy: str = ""


@pytest.fixture(scope="session")
def shop() -> Iterator[Shop]:
    found = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            if found.policy:
                self.send_header("content-security-policy", found.policy)
            self.end_headers()
            self.wfile.write(found.body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://localhost:{server.server_port}"  # another site than 127.0.0.1
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def make_app(folder: Path, origin: str) -> Path:
    """Make the app, with its rows and its document loaded; pages of an origin may use it."""
    settings = {"server": {**SERVER, "origins": [origin]}}
    app = write(folder, {**FILES, "agent/agent.yml": json.dumps(settings)})

    async def fill() -> None:
        async with open_host(app) as host:
            await host.add_documents("notes", app / "notes")

    run_apart(fill)
    load_rows(app)
    return app


@pytest.fixture(scope="session")
def page_app(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Path:
    return make_app(tmp_path_factory.mktemp("page") / "app", shop.url)


@pytest.fixture(scope="session")
def site(page_app: Path) -> Iterator[Served]:
    with serving(page_app) as served:
        yield served


SESSIONS: dict[tuple[str, str], Any] = {}  # cookies, by address and key


@dataclass
class Visit:
    """A page of a browser, what it complained of, and where it sent requests."""

    page: Page
    context: BrowserContext
    url: str
    complaints: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    allowed: set[str] = field(default_factory=set)  # other origins

    def sign_in(self, key: str = LOCAL, fragment: str = "") -> None:
        """Open the page with a session."""
        if (self.url, key) not in SESSIONS:  # sign-ins a minute are limited
            answer = self.context.request.post(f"{self.url}/api/session", data={"key": key})
            assert answer.ok
            SESSIONS[self.url, key] = self.context.cookies()
        self.context.add_cookies(SESSIONS[self.url, key])
        self.page.goto("about:blank")  # another fragment alone would load nothing
        self.page.goto(f"{self.url}/{fragment}")

    def open(self, assistant: str = "tea", key: str = LOCAL) -> None:
        """Open the page with a session and an assistant."""
        self.sign_in(key, f"#a={assistant}")
        self.page.locator("groundhook-chat textarea").wait_for()

    def ask(self, text: str, *, wait: bool = True) -> None:
        """Ask as a person does; wait for the end of the answer."""
        before = self.page.locator("article.turn").count()
        self.page.locator("groundhook-chat textarea").fill(text)
        self.page.keyboard.press("Enter")
        if wait:
            self.page.locator("article.turn .acts").nth(before).wait_for()


FOCUSED = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const label = at?.labels?.[0]?.innerText;
  return (at?.ariaLabel || label || at?.innerText || at?.value || "").trim();
}"""


def go_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press a key until what begins with this name has the focus."""
    for _ in range(60):
        if str(page.evaluate(FOCUSED)).startswith(name):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{name!r} is not reached with {key}")


Open = Callable[..., Visit]


def installed() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A browser whose driver ends: one that goes on leaves its event loop to what follows."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = installed()
    if path is None:
        pytest.skip("no Chromium is installed")
    with launched(path) as browser:
        yield browser


@contextmanager
def visiting(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """A visit that fails at its end if the page has complained or left its origin."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
    context.set_default_timeout(60_000)  # which only a hang reaches
    page = context.new_page()
    visit = Visit(page, context, url)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.on(
        "console",
        lambda said: (
            visit.complaints.append(said.text)
            if said.type == "error" and "Failed to load resource" not in said.text
            else None
        ),
    )

    def watch(route: Route) -> None:
        at = urlsplit(route.request.url)
        origin = f"{at.scheme}://{at.netloc}"
        if at.scheme in ("http", "https") and origin not in (url, *visit.allowed):
            visit.left.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    context.route("**/*", watch)
    yield visit
    context.close()
    assert visit.complaints == []
    assert visit.left == []


@pytest.fixture
def visit(chromium: Browser, site: Served) -> Iterator[Visit]:
    with visiting(chromium, site.url) as opened:
        yield opened

"""Writes pictures of the page's main states to build/screenshots: light, dark, narrow, and in other
languages. A person looks at them; `make screenshots` runs it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.page.conftest import Visit, installed, launched, make_app, visiting
from tests.server.conftest import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parents[2] / "build/screenshots"
KINDS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 780}},
}
LANGUAGES = ("ar", "de", "es", "fr", "he")


def main() -> None:
    """Take all pictures."""
    path = installed()
    if path is None:
        raise SystemExit("no Chromium is installed: apt-get install chromium")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(Path(folder) / "app", "http://localhost:1")
        with serving(app) as served, launched(path) as browser:
            for kind, options in KINDS.items():
                _take(browser, served.url, kind, options)
            for language in LANGUAGES:
                _translated(browser, served.url, language)


def _take(browser: Browser, url: str, kind: str, options: dict[str, Any]) -> None:
    with visiting(browser, url, **options) as visit:
        page = visit.page

        def picture(name: str) -> None:
            page.wait_for_timeout(300)  # what fades in is there
            page.screenshot(path=str(FOLDER / f"{kind}-{name}.png"))

        page.goto(f"{url}/")
        page.get_by_label("Key or token").wait_for()
        picture("sign-in")
        visit.open("tea")
        page.get_by_role("button", name="Which teas are there?", exact=True).wait_for()
        picture("empty")
        visit.ask("Which teas are there?")
        picture("answer")
        page.locator(".chip").first.focus()
        page.locator(".card").wait_for()
        picture("card")
        page.locator(".chip").first.click()
        page.get_by_role("dialog").get_by_role("cell", name="Assam").wait_for()
        picture("source")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Why?").click()
        page.locator(".drawer td").first.wait_for()
        picture("why")
        page.get_by_role("tab", name="Trace").click()
        picture("trace")
        page.get_by_role("button", name="Close").click()
        if kind == "narrow":
            page.get_by_role("button", name="Chats").click()
            picture("chats")
        _workbench(visit, picture)
        _knowledge(visit, picture)
        _others(visit, picture)


def _translated(browser: Browser, url: str, language: str) -> None:
    with visiting(browser, url, locale=language) as visit:
        page = visit.page

        def picture(name: str) -> None:
            page.wait_for_timeout(300)
            page.screenshot(path=str(FOLDER / f"{language}-{name}.png"))

        page.goto(f"{url}/")
        page.locator("dialog input").wait_for()
        picture("sign-in")
        visit.open("tea")
        visit.ask("Which teas are there?")
        page.locator(".chip").first.focus()
        page.locator(".card").wait_for()
        picture("card")
        page.keyboard.press("Escape")
        for summary in page.locator("summary").all():
            summary.click()
        picture("answer")


def _workbench(visit: Visit, picture: Any) -> None:
    page = visit.page
    visit.sign_in(fragment="#a=notes&view=workbench&q=How+long+does+black+tea+take?")
    page.get_by_label("Trial:").fill('{"search": {"kb": {"max_results": 1}}, "prompts": "Short."}')
    page.get_by_role("button", name="Run both").click()
    page.get_by_text("Prompts as they were sent").wait_for()
    page.get_by_role("button", name="Run both").wait_for()
    picture("workbench")
    page.get_by_label("Questions").fill("How long does black tea take?\nHow long does coffee take?")
    page.get_by_role("button", name="Run both").click()
    page.get_by_text("No question expects anything").wait_for()
    picture("workbench-list")
    page.get_by_role("button", name="Show as a diff").click()
    page.locator(".diff").first.wait_for()
    picture("workbench-diff")


def _knowledge(visit: Visit, picture: Any) -> None:
    page = visit.page
    visit.sign_in(fragment="#view=knowledge")
    page.get_by_label("Search in this collection").fill("How long does black tea take?")
    page.get_by_role("button", name="Tea", exact=True).wait_for()
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".cut").first.wait_for()
    page.get_by_role("button", name="Tea", exact=True).first.click()
    page.locator(".cut .better").first.wait_for()
    picture("knowledge")


def _others(visit: Visit, picture: Any) -> None:
    page = visit.page
    for assistant, question in (
        ("notes", "How long does black tea take?"),
        ("hostile", "all teas"),
    ):
        visit.open(assistant)
        visit.ask(question)
        picture(assistant)
    visit.open("rtl")
    visit.ask("מתי מחליפים?")
    picture("hebrew")
    visit.open("fails")
    visit.ask("Anything?", wait=False)
    page.get_by_role("alert").wait_for()
    picture("error")
    visit.open("late")
    visit.ask("all teas", wait=False)
    page.locator(".lanes").wait_for()
    picture("searching")
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()


if __name__ == "__main__":
    main()

"""The page by the keyboard and by ear: where the focus is after each action, and what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.page.conftest import FOCUSED, Visit, go_to, visiting
from tests.server.conftest import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# What has the focus: its name, whether it is seen, and whether that it has the focus is seen.
SEEN = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (at === document.body) return null;
  const name = (at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || "").trim();
  const box = at.closest(".box:focus-within");
  const style = getComputedStyle(at);
  const shown = style.outlineStyle !== "none" || (box && getComputedStyle(box).boxShadow !== "none");
  return { name, seen: at.checkVisibility({ opacityProperty: true }), shown: Boolean(shown) };
}"""
# Everything that a live region said.
LISTEN = """() => {
  const { spokenText } = document.querySelector("groundhook-chat");
  window.spoken = [];
  new MutationObserver((all) => {
    for (const { addedNodes } of all) for (const each of addedNodes) spoken.push(each.textContent);
  }).observe(spokenText, { childList: true });
}"""


def ask(visit: Visit) -> None:
    """Ask, and wait until the answer is kept: its buttons are made anew then."""
    visit.ask("Which teas are there?")
    visit.page.get_by_role("button", name="Helpful", exact=True).wait_for()


def waits(page: Page, name: str) -> None:
    """Wait until what has this name has the focus."""
    page.wait_for_function(f"(name) => ({FOCUSED})().startsWith(name)", arg=name)


def test_the_focus_is_seen_and_has_a_name_wherever_it_goes(visit: Visit) -> None:
    visit.open()
    ask(visit)
    page = visit.page
    page.get_by_role("button", name="Why?").press("Enter")
    page.locator(".drawer td").first.wait_for()
    stops: list[str] = []
    while len(stops) < 300 and stops.count("New chat") < 2:  # once around, past all chats
        page.keyboard.press("Tab")
        if at := page.evaluate(SEEN):
            assert at["name"], stops
            assert at["seen"], at
            assert at["shown"], at
            stops.append(at["name"])
    assert {"To the question", "New chat", "Your question", "Sources", "Close"} <= set(stops)
    assert "Trace" not in stops  # the arrows lead to the other tabs


def test_the_focus_is_never_lost(visit: Visit) -> None:
    visit.open()
    page, press = visit.page, visit.page.keyboard.press
    page.get_by_role("button", name="Which teas are there?", exact=True).press("Enter")
    waits(page, "Your question")
    page.locator(".acts").wait_for()
    page.get_by_role("button", name="Helpful", exact=True).press("Enter")
    page.get_by_label("Comment").wait_for()
    assert page.evaluate(FOCUSED) == "Helpful"
    page.get_by_label("Comment").fill("Clear.")
    press("Enter")
    page.get_by_role("button", name="Saved").wait_for()
    assert page.evaluate(FOCUSED) == "Comment"
    page.get_by_role("button", name="Edit").press("Enter")
    page.get_by_role("button", name="Cancel", exact=True).press("Enter")
    waits(page, "Your question")
    page.get_by_role("button", name="Regenerate").press("Enter")
    waits(page, "Your question")
    page.get_by_role("group", name="Answer 2 of 2").wait_for()
    page.get_by_role("button", name="Answer before").press("Enter")
    page.get_by_role("group", name="Answer 1 of 2").wait_for()
    waits(page, "Next answer")
    page.locator(".chats li.current button").press("Enter")
    page.get_by_label("Title").fill("All by keys")
    press("Enter")
    page.get_by_role("link", name="All by keys").wait_for()
    waits(page, "Rename or delete “All by keys”")


def test_what_is_closed_gives_the_focus_back_to_what_opened_it(visit: Visit) -> None:
    visit.open()
    ask(visit)
    page, press = visit.page, visit.page.keyboard.press
    page.get_by_role("button", name="Why?").press("Enter")
    waits(page, "Sources")
    press("Shift+Tab")
    go_to(page, "Sources", "Shift+Tab")
    press("ArrowRight")
    waits(page, "Trace")
    press("End")
    waits(page, "Check")
    press("Escape")
    waits(page, "Why?")
    page.locator(".chip").first.focus()
    go_to(page, "Why here?")
    press("Enter")
    waits(page, "Sources")
    press("Escape")
    waits(page, "Source: Assam")
    go_to(page, "Open")
    press("Enter")
    page.get_by_role("dialog").get_by_role("cell", name="Assam").wait_for()
    press("Escape")
    waits(page, "Source: Assam")


def test_progress_and_answer_are_said_once_and_as_sentences(visit: Visit) -> None:
    visit.open()
    visit.page.evaluate(LISTEN)
    visit.ask("Which teas are there?")
    visit.page.wait_for_function("spoken.join().includes('How long?')")
    said = visit.page.evaluate("spoken")
    assert sum("Some words first." in each for each in said) == 1
    assert sum("Searched database: 2 results" in each for each in said) == 1
    whole = " ".join(said)
    assert "Table: 3 rows" in whole
    assert "Download" not in whole
    assert said[-1] == "sure, 2 of 5 claims cited"


def test_a_refusal_says_why_and_has_no_claims(visit: Visit) -> None:
    visit.open("herbs")
    page = visit.page
    page.evaluate(LISTEN)
    visit.ask("How many herbs grow in zorgland?")
    facts = page.locator(".facts").inner_text()
    assert facts.startswith("nothing found that answers this")
    assert "claim" not in facts
    assert page.evaluate("spoken.at(-1)") == "nothing found that answers this"
    why = page.get_by_role("button", name="Why?")
    why.press("Enter")
    waits(page, "Sources")
    assert (
        page.locator(".drawer .body").inner_text().startswith("Not understood: “grow in zorgland”")
    )
    page.get_by_role("button", name="Helpful", exact=True).dispatch_event("click")
    page.get_by_label("Comment").wait_for()  # the buttons are made anew
    page.keyboard.press("Escape")
    waits(page, "Why?")


def test_an_assistant_is_chosen_with_the_arrows(visit: Visit) -> None:
    visit.open()
    page, press = visit.page, visit.page.keyboard.press
    page.get_by_role("button", name="Assistant: Tea, searches database").press("Enter")
    waits(page, "Tea")
    page.locator("#assistants [aria-current=true]:focus").wait_for()
    press("Home")
    first = page.evaluate(FOCUSED)
    press("ArrowUp")
    assert page.evaluate(FOCUSED) != first
    press("ArrowDown")
    assert page.evaluate(FOCUSED) == first
    press("Enter")
    page.get_by_role("button", name=f"Assistant: {first.split(chr(10))[0]}").wait_for()
    waits(page, "Your question")


@pytest.mark.browser
def test_common_errors_are_said_in_the_language_of_the_reader(
    chromium: Browser, site: Served
) -> None:
    with visiting(chromium, site.url, locale="de") as visit:
        page = visit.page
        page.goto(f"{visit.url}/#a=fails")
        page.get_by_label("Schlüssel oder Token").fill("gh_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("Bitte mit einem gültigen Schlüssel oder Token anmelden.").wait_for()
        waits(page, "Schlüssel oder Token")
        visit.open("fails")
        visit.ask("Etwas?", wait=False)
        page.get_by_role("alert").get_by_text("Das Sprachmodell").wait_for()

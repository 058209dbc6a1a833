"""A person at a real browser."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import pytest
from playwright.sync_api import Page, Playwright, sync_playwright

WAIT_MS = 15_000

P = ParamSpec("P")
R = TypeVar("R")


def find_chromium() -> str:
    """The browser's program. Skips where it is missing; in CI that is a failure."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop("no browser: chromium is missing")
    return found


def _at_the_browser(
    act: Callable[Concatenate[Reviewer, P], R],
) -> Callable[Concatenate[Reviewer, P], R]:
    """Act in the browser's own thread: Playwright allows one browser a thread, and other tests have theirs."""

    @functools.wraps(act)
    def wrapper(self: Reviewer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.thread.submit(act, self, *args, **kwargs).result()

    return wrapper


class Reviewer:
    """Somebody who works the inbox with a mouse."""

    def __init__(self, thread: ThreadPoolExecutor, page: Page, url: str) -> None:
        self.thread, self.page, self.url = thread, page, url

    @_at_the_browser
    def sign_in(self, name: str, password: str) -> None:
        """Open the inbox, be asked who one is, and land there."""
        self.page.goto(f"{self.url}/")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Inbox").wait_for()

    @_at_the_browser
    def approve(self, pk: int) -> None:
        """Click Approve in the inbox, and once more where the page says what speaks against it."""
        self.page.goto(f"{self.url}/")
        row = self.page.locator(f"#d-{pk}")
        row.get_by_role("button", name="Approve").click()
        again, settled = row.get_by_role("button", name="Yes, approve"), row.get_by_text("Approved by")
        again.or_(settled).first.wait_for()
        if again.is_visible():
            again.click()
        settled.first.wait_for()

    @_at_the_browser
    def deny(self, pk: int, reason: str) -> None:
        """Click Deny in the inbox and say why."""
        self.page.goto(f"{self.url}/")
        row = self.page.locator(f"#d-{pk}")
        row.get_by_role("button", name="Deny").click()
        row.get_by_label("Why not evict").fill(reason)
        row.get_by_role("button", name="Deny", exact=True).click()
        row.get_by_text("Denied by").first.wait_for()

    @_at_the_browser
    def override(self, pk: int, reason: str) -> None:
        """Open a denied decision and allow it all the same."""
        self.page.goto(f"{self.url}/d/{pk}/")
        head = self.page.locator("#decision")
        head.get_by_role("button", name="Override").click()
        head.get_by_label("against").fill(reason)
        head.get_by_role("button", name="Override: evict it").click()
        head.get_by_text("Overridden by").first.wait_for()

    @_at_the_browser
    def go_on(self, pk: int) -> None:
        """Open a decision that is held and let it go on."""
        self.page.goto(f"{self.url}/d/{pk}/")
        button = self.page.locator("#decision").get_by_role("button", name="Go on")
        button.click()
        button.wait_for(state="detached")

    @_at_the_browser
    def read(self, pk: int) -> str:
        """All the text of a decision's page."""
        self.page.goto(f"{self.url}/d/{pk}/")
        return self.page.locator("main").inner_text()


@contextmanager
def reviewer(url: str) -> Iterator[Reviewer]:
    """A fresh browser."""
    chromium = find_chromium()
    with ThreadPoolExecutor(1) as thread:
        playwright = thread.submit(sync_playwright().start).result()
        try:
            yield Reviewer(thread, thread.submit(_open, playwright, chromium).result(), url)
        finally:
            thread.submit(playwright.stop).result()


def _open(playwright: Playwright, chromium: str) -> Page:
    page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
    page.set_default_timeout(WAIT_MS)
    return page

"""A person at a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright

WAIT_MS = 15_000


def find_chromium() -> str:
    """The browser's program. Skips where it is missing; in CI that is a failure."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop("no browser: chromium is missing")
    return found


class Reviewer:
    """Somebody who works the inbox with a mouse."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        page.set_default_timeout(WAIT_MS)

    def sign_in(self, name: str, password: str) -> None:
        """Open the inbox, be asked who one is, and land there."""
        self.page.goto(f"{self.url}/")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Inbox").wait_for()

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

    def deny(self, pk: int, reason: str) -> None:
        """Click Deny in the inbox and say why."""
        self.page.goto(f"{self.url}/")
        row = self.page.locator(f"#d-{pk}")
        row.get_by_role("button", name="Deny").click()
        row.get_by_label("Why not evict").fill(reason)
        row.get_by_role("button", name="Deny", exact=True).click()
        row.get_by_text("Denied by").first.wait_for()

    def override(self, pk: int, reason: str) -> None:
        """Open a denied decision and allow it all the same."""
        self.page.goto(f"{self.url}/d/{pk}/")
        head = self.page.locator("#decision")
        head.get_by_role("button", name="Override").click()
        head.get_by_label("against").fill(reason)
        head.get_by_role("button", name="Override: evict it").click()
        head.get_by_text("Overridden by").first.wait_for()

    def read(self, pk: int) -> str:
        """All the text of a decision's page."""
        self.page.goto(f"{self.url}/d/{pk}/")
        return self.page.locator("main").inner_text()


@contextmanager
def reviewer(url: str) -> Iterator[Reviewer]:
    """A fresh browser."""
    chromium = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield Reviewer(browser.new_page(), url)
        finally:
            browser.close()

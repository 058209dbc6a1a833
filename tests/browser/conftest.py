"""Chromium against a live server. Without Chromium these tests skip and say so; in CI that is a failure."""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from decisions.models import Cluster, Decision, Heartbeat, Role
from tests.builders import make_cluster, make_decision, make_user

# Playwright's synchronous API keeps an event loop in this thread, which Django's ORM would refuse to run beside.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}


def chromium_path() -> str:
    """Where Chromium is on this machine; empty where it is not."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next((path for name in names if (path := shutil.which(name))), "")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module. Not longer: beside Playwright's loop no test of this thread may run its own."""
    path = chromium_path()
    if not path and os.environ.get("CI") == "true":
        pytest.fail("Chromium is missing, and in CI these tests must run")
    if not path:
        pytest.skip("needs Chromium; none was found (set CHROMIUM to its path)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def prod(transactional_db: None) -> Cluster:
    """An armed cluster with a worker that was just seen."""
    Heartbeat.objects.create(name="worker@test", seen_at=timezone.now() + timedelta(hours=1))
    return make_cluster()


@pytest.fixture
def ada(transactional_db: None) -> User:
    """An approver."""
    return make_user("ada", Role.APPROVER)


@pytest.fixture
def admin(transactional_db: None) -> User:
    """An admin of everything."""
    return make_user("root", Role.ADMIN)


@pytest.fixture
def waiting(prod: Cluster) -> Callable[..., Decision]:
    """A decision that waits."""

    def build(**fields: Any) -> Decision:
        now = timezone.now()
        times = {
            "created_at": now,
            "updated_at": now,
            "nominated_at": now,
            "expires_at": now + timedelta(minutes=50),
        }
        return make_decision(prod, **{**times, **fields})

    return build


class Window:
    """A signed-in browser window that remembers every complaint of the page."""

    def __init__(self, context: BrowserContext, server: str) -> None:
        self.context, self.server = context, server
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: Any) -> None:
        # A 409 or 422 is an answer that the page shows; the browser still logs it as a failed load.
        if message.type == "error" and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def go(self, path: str) -> Page:
        """Open a page and wait until its scripts run."""
        self.page.goto(self.server + path)
        self.page.wait_for_selector("html.js")
        return self.page

    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        wide = self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return bool(wide)


Open = Callable[..., Window]


@pytest.fixture
def window(chromium: Browser, live_server: LiveServer, settings: Any) -> Iterator[Open]:
    """Open a window for a person: ``window(ada, phone=True, dark=True, javascript=False)``."""
    contexts: list[BrowserContext] = []

    def open_window(
        user: User, *, phone: bool = False, dark: bool = False, javascript: bool = True
    ) -> Window:
        context = chromium.new_context(
            viewport=PHONE if phone else DESK,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
        )
        context.set_default_timeout(8000)
        contexts.append(context)
        client = Client()
        client.force_login(user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
        return Window(context, live_server.url)

    yield open_window
    for context in contexts:
        context.close()

"""Signing in, being locked out, and a new password, in both themes and both widths."""

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page

from decisions.models import Cluster
from tests.browser.conftest import Open, Window

pytestmark = [pytest.mark.browser, pytest.mark.real]
LOOKS = [(phone, dark) for phone in (False, True) for dark in (False, True)]
# A folder: the pages are kept there as pictures, to be looked at.
PICTURES = os.environ.get("PICTURES", "")


def problems(window: Window, name: str) -> list[str]:
    """What axe finds, what the CSP stops, and whether it scrolls sideways."""
    if PICTURES:
        window.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
    found = Axe().run(window.page, options={"resultTypes": ["violations"]}).response["violations"]
    axes = [f"{each['id']}: {[node['html'] for node in each['nodes'][:3]]}" for each in found]
    return [*axes, *window.complaints, *(["scrolls sideways"] if window.scrolls_sideways() else [])]


def sign_in(page: Page, password: str) -> None:
    page.get_by_label("User name").fill("root")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize(("phone", "dark"), LOOKS)
def test_who_is_locked_out_reads_when_to_try_again(
    window: Open, admin: User, prod: Cluster, phone: bool, dark: bool
) -> None:
    mine = window(admin, phone=phone, dark=dark)
    mine.context.clear_cookies()
    page = mine.go("/login?because=ended")
    assert problems(mine, f"login-{phone}-{dark}") == []
    for _ in range(5):
        sign_in(page, "wrong")
    page.get_by_role("heading", name="Too many attempts").wait_for()
    assert "Try again at" in page.inner_text("main")
    assert problems(mine, f"locked-{phone}-{dark}") == []


@pytest.mark.parametrize(("phone", "dark"), LOOKS)
def test_a_password_is_changed_and_one_signs_in_with_it(
    window: Open, admin: User, prod: Cluster, phone: bool, dark: bool
) -> None:
    mine = window(admin, phone=phone, dark=dark)
    page = mine.go("/password")
    page.get_by_label("Present password").fill("wrong")
    page.get_by_label("New password").fill("short")
    page.get_by_label("The new one again").fill("shorter")
    page.get_by_role("button", name="Change it").click()
    page.get_by_text("That is not your present password.").wait_for()
    assert problems(mine, f"password-{phone}-{dark}") == []
    page.get_by_label("Present password").fill("correct horse battery")
    page.get_by_label("New password").fill("a better horse battery")
    page.get_by_label("The new one again").fill("a better horse battery")
    page.get_by_role("button", name="Change it").click()
    page.wait_for_url("**/login?because=password")
    sign_in(page, "a better horse battery")
    page.get_by_role("link", name="Settings").wait_for()


@pytest.mark.parametrize(("phone", "dark"), LOOKS)
def test_a_token_is_shown_in_the_answer_itself(
    window: Open, admin: User, prod: Cluster, phone: bool, dark: bool
) -> None:
    mine = window(admin, phone=phone, dark=dark)
    page = mine.go("/settings/#tokens")
    page.get_by_text("Make a token").click()
    page.get_by_label("What uses it").fill("nightly report")
    page.get_by_role("button", name="Make it and show it once").click()
    page.get_by_text("It is shown this once.").wait_for()
    assert problems(mine, f"token-{phone}-{dark}") == []
    page.goto(f"{mine.server}/settings/")
    assert "dui_" not in page.content()

"""Signing in: tried too often, it is closed for a while, which is said, and is on record."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, RequestFactory, override_settings
from django.utils import timezone

from decisions.models import AuditEntry
from decisions.services import sessions
from decisions.web.throttle import address_of
from tests.builders import make_user
from tests.web.conftest import browser_of
from tests.web.pages import text_of

pytestmark = pytest.mark.django_db
RIGHT, WRONG = "correct horse battery", "wrong"


def sign_in(password: str = WRONG, *, address: str = "192.0.2.1", name: str = "ada") -> Any:
    return Client(REMOTE_ADDR=address).post("/login", {"username": name, "password": password})


def fail(times: int, **fields: str) -> Any:
    return [sign_in(**fields) for _ in range(times)][-1]


def test_the_fifth_failure_closes_it_and_says_until_when(ada: User) -> None:
    assert fail(4).status_code == 200
    answer = sign_in()
    assert (answer.status_code, answer["Cache-Control"]) == (429, "no-store")
    assert 890 <= int(answer["Retry-After"]) <= 900
    until = timezone.now() + timedelta(minutes=15)
    assert f"Try again at {until:%H:%M}" in text_of(answer)


def test_closed_the_right_password_is_not_tried_either(ada: User) -> None:
    fail(5)
    answer = sign_in(RIGHT)
    assert answer.status_code == 429
    assert settings.SESSION_COOKIE_NAME not in answer.cookies


def test_the_owner_gets_in_from_elsewhere(ada: User) -> None:
    fail(5)
    assert sign_in(RIGHT, address="192.0.2.2").status_code == 302


def test_and_so_do_others_from_there(ada: User, viewer: User) -> None:
    fail(5)
    assert sign_in(RIGHT, name="vera").status_code == 302


def test_a_thousand_addresses_guess_twenty_times(ada: User) -> None:
    answers = [sign_in(address=f"192.0.2.{number}").status_code for number in range(1, 22)]
    assert answers == [200] * 19 + [429] * 2


def test_a_name_that_does_not_exist_is_no_different(db: None) -> None:
    assert fail(5, name="nobody").status_code == 429


def test_after_a_while_it_opens(ada: User) -> None:
    fail(5)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert sign_in(RIGHT).status_code == 302


def test_trying_while_it_is_closed_does_not_keep_it_closed(ada: User) -> None:
    fail(5)
    before = AccessAttempt.objects.values("attempt_time", "failures_since_start").get()
    fail(3)
    assert AccessAttempt.objects.values("attempt_time", "failures_since_start").get() == before


def test_whoever_runs_it_opens_it_at_once(ada: User) -> None:
    fail(5)
    call_command("axes_reset_username", "ada")
    assert sign_in(RIGHT).status_code == 302


def test_signing_in_forgets_the_failures(ada: User) -> None:
    fail(4)
    sign_in(RIGHT)
    assert fail(4).status_code == 200


def test_it_is_on_record_once(ada: User) -> None:
    fail(8)
    entry = AuditEntry.objects.get(what="sign-in locked")
    assert (entry.subject, entry.detail["address"]) == ("user ada", "192.0.2.1")


def test_a_name_that_nobody_has_is_not_it_may_be_a_password(db: None) -> None:
    fail(5, name="my-password-in-the-wrong-field")
    assert "wrong-field" not in str(list(AuditEntry.objects.values()))
    sessions.forget(now=timezone.now() + timedelta(minutes=16))
    assert not AccessAttempt.objects.exists()


def test_no_password_that_was_tried_is_kept(ada: User) -> None:
    fail(2, password="my other password")
    assert "my other password" not in str(list(AccessAttempt.objects.values()))


def test_the_page_itself_stays_open(ada: User) -> None:
    fail(5)
    assert Client(REMOTE_ADDR="192.0.2.1").get("/login").status_code == 200


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        (0, "203.0.113.9", "192.0.2.1"),
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "10.0.0.1, 203.0.113.9", "203.0.113.9"),
        (2, "10.0.0.1, 203.0.113.9, 198.51.100.7", "203.0.113.9"),
        (2, "203.0.113.9", "192.0.2.1"),
        (1, "nonsense", "192.0.2.1"),
        (1, "", "192.0.2.1"),
    ],
)
def test_a_header_says_who_calls_as_far_as_our_proxies_wrote_it(
    proxies: int, header: str, address: str
) -> None:
    request = RequestFactory().get("/login", headers={"X-Forwarded-For": header}, REMOTE_ADDR="192.0.2.1")
    with override_settings(ENV=settings.ENV.model_copy(update={"trusted_proxies": proxies})):
        assert address_of(request) == address


# --- a password of one's own ---------------------------------------------------------------------------------


def change(browser: Client, **fields: str) -> Any:
    new = "a better horse battery"
    return browser.post("/password", {"present": RIGHT, "new": new, "again": new, **fields})


def test_a_new_password_ends_every_session_and_is_on_record(ada: User) -> None:
    mine, other = browser_of(ada), browser_of(ada)
    answer = change(mine)
    assert answer["Location"] == "/login?because=password"
    assert "Sign in with the new one" in text_of(mine.get(answer["Location"]))
    assert other.get("/").status_code == 302
    entry = AuditEntry.objects.get(what="password changed")
    assert (entry.by_name, entry.subject) == ("ada", "user ada")
    assert sign_in("a better horse battery").status_code == 302


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"present": "wrong"}, "That is not your present password."),
        ({"again": "something else"}, "The two are not the same."),
        ({"new": "short", "again": "short"}, "This password is too short."),
        ({"new": "password123", "again": "password123"}, "This password is too common."),
        ({"new": RIGHT, "again": RIGHT}, "That is the present one."),
        ({"new": "", "again": ""}, "This password is too short."),
    ],
)
def test_a_password_that_cannot_be_is_refused(ada: User, fields: dict[str, str], sentence: str) -> None:
    browser = browser_of(ada)
    answer = change(browser, **fields)
    assert (answer.status_code, sentence in text_of(answer)) == (422, True)
    ada.refresh_from_db()
    assert ada.check_password(RIGHT)


def test_nobody_guesses_the_present_one_in_a_session_that_was_left_open(ada: User) -> None:
    browser = browser_of(ada)
    answers = [change(browser, present="wrong").status_code for _ in range(5)]
    assert answers == [422] * 4 + [429]
    assert change(browser).status_code == 429


def test_a_password_of_the_command_line_is_on_record_too(db: None) -> None:
    user = make_user("nina")
    user.set_password("another horse battery")
    user.save()
    assert AuditEntry.objects.get(what="password changed").by_name == "command line"

"""Who signs in and out, who tried, who was added and removed: all of it is on record."""

from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

from decisions.models import INSTALLATION, AuditEntry, Role
from decisions.services import verification
from decisions.web.signins import MOST_A_MINUTE, Bound, unknown_names
from tests.builders import NOW, at, make_user
from tests.web.pages import text_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def fresh_minute() -> None:
    unknown_names.take(datetime.max.replace(tzinfo=NOW.tzinfo) - timedelta(days=1))
    unknown_names._since = None


def sign_in(client: Client, name: str, password: str = PASSWORD) -> Any:
    return client.post("/login", {"username": name, "password": password})


def entries() -> list[tuple[str, str, str]]:
    """What, by whom, of what."""
    return [(row.what, row.by_name, row.subject) for row in AuditEntry.objects.order_by("seq")]


def test_signing_in_and_out(client: Client, ada: User) -> None:
    sign_in(client, "ada")
    client.post("/logout")
    assert entries() == [("signed in", "ada", "user ada"), ("signed out", "ada", "user ada")]
    row = AuditEntry.objects.filter(what="signed in").get()
    assert (row.by_id, row.detail) == (ada.pk, {"address": "127.0.0.1"})


def test_a_failed_attempt_on_somebodys_name(client: Client, ada: User) -> None:
    sign_in(client, "ada", "a wrong one, quite long")
    assert entries() == [("sign-in failed", "not signed in", "user ada")]
    assert "a wrong one" not in str(list(AuditEntry.objects.values()))


def test_a_name_that_nobody_has_is_not_kept_for_it_may_be_a_password(client: Client, ada: User) -> None:
    sign_in(client, "hunter2 hunter2")
    assert entries() == [("sign-in failed", "not signed in", "a name that nobody has")]


def test_too_many_attempts_are_locked_and_say_so_once(client: Client, ada: User) -> None:
    for _ in range(8):
        sign_in(client, "ada", "wrong, and long enough")
    words = [what for what, _, _ in entries()]
    assert sorted(words) == ["sign-in failed"] * 5 + ["sign-in locked"]


def test_attempts_on_other_names_do_not_fill_the_record(client: Client) -> None:
    for number in range(MOST_A_MINUTE + 5):
        sign_in(client, f"nobody-{number}")
    assert len(entries()) == MOST_A_MINUTE


def test_what_was_not_told_is_told_in_the_next_minute() -> None:
    bound = Bound(most=2)
    assert [bound.take(at(second)) for second in (0, 1, 2, 3, 61, 62)] == [0, 0, None, None, 2, 0]


def test_a_failed_attempt_keeps_no_password_anywhere(client: Client, ada: User) -> None:
    from axes.models import AccessAttempt

    sign_in(client, "ada", "typed in the wrong place")
    client.force_login(ada)
    typed = {"present": "typed-present", "new": "typed-new-password", "again": "typed-new-password"}
    client.post("/password", typed)
    kept = str(list(AccessAttempt.objects.values())) + str(list(AuditEntry.objects.values()))
    assert AccessAttempt.objects.exists()
    assert "typed" not in kept


def test_somebody_is_added_and_removed(db: None) -> None:
    call_command("createsuperuser", username="root", email="", interactive=False, stdout=StringIO())
    Group.objects.create(name="sre")
    User.objects.get().delete()
    assert [(what, subject) for what, _, subject in entries()] == [
        ("person added", "user root"),
        ("group added", "group sre"),
        ("person removed", "user root"),
    ]


def test_a_person_goes_with_the_roles_that_stand_on_record(db: None) -> None:
    make_user("ada", Role.APPROVER).delete()
    assert AuditEntry.objects.get().detail == {"roles": ["approver"]}


def test_the_settings_page_shows_the_record(client: Client, admin: User, ada: User) -> None:
    client.force_login(admin)
    call_command("verify_audit", stdout=StringIO())
    found = verification.verify(INSTALLATION)
    page = text_of(client.get("/settings/"))
    assert f"installation 1 entry {found.hash[:16]} whole up to 1, 0s ago" in page
    client.force_login(ada)
    assert found.hash[:16] not in text_of(client.get("/settings/"))


def test_the_list_of_changes_leaves_out_who_came_and_went(client: Client, admin: User) -> None:
    client.force_login(admin)
    client.post("/settings/", {"what": "add-reason", "text": "owner asked to wait"})
    page = text_of(client.get("/settings/"))
    assert "team reason added" in page
    assert "signed in" not in page

"""Sessions: the server ends them, by time, by a person's rights, by signing out; a poll prolongs nothing."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Role, RoleBinding, Session
from decisions.services import access, sessions
from decisions.services.actors import SYSTEM
from tests.builders import make_cluster, make_user
from tests.web.conftest import browser_of

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def browser(ada: User) -> Client:
    """Ada's, signed in."""
    return browser_of(ada)


def aged(*, signed_in: timedelta = HOUR, active: timedelta = HOUR) -> None:
    """Ada signed in and did something so long ago."""
    now = timezone.now()
    Session.objects.update(signed_in_at=now - signed_in, active_at=now - active)


def is_signed_in(browser: Client) -> bool:
    return browser.get("/history/").status_code == 200


@pytest.mark.parametrize(
    ("times", "lives"),
    [
        ({"active": 7.9 * HOUR, "signed_in": 11.9 * HOUR}, True),
        ({"active": 8.1 * HOUR}, False),
        ({"active": timedelta(0), "signed_in": 12.1 * HOUR}, False),
    ],
)
def test_a_session_ends_after_eight_idle_hours_and_after_twelve(
    browser: Client, times: dict[str, timedelta], lives: bool
) -> None:
    aged(**times)
    assert is_signed_in(browser) is lives


def test_who_does_something_is_not_idle(browser: Client) -> None:
    aged()
    browser.get("/history/")
    assert Session.objects.get().active_at > timezone.now() - timedelta(minutes=1)


@pytest.mark.parametrize(
    "address", ["/live/shell", "/live/inbox", "/api/v1/decisions/", "/nowhere", "/healthz"]
)
def test_what_polls_is_idle(browser: Client, address: str) -> None:
    aged()
    for headers in ({}, {"HX-Request": "false"}, {"Sec-Fetch-User": "?1"}):
        browser.get(address, headers=headers)
    assert Session.objects.get().active_at < timezone.now() - timedelta(minutes=59)


def test_writing_to_a_session_does_not_prolong_it(browser: Client) -> None:
    aged()
    before = Session.objects.values("active_at", "signed_in_at", "expire_date").get()
    session = browser.session
    session["note"] = "x"
    session.save()
    assert Session.objects.values("active_at", "signed_in_at", "expire_date").get() == before


def test_pages_poll_nothing_but_the_live_addresses() -> None:
    pages = [path.read_text(encoding="utf-8") for path in Path("templates").glob("*.html")]
    tags = [tag for page in pages for tag in re.findall(r"<[a-z]+\b[^>]*hx-trigger[^>]*>", page, re.DOTALL)]
    by_themselves = [
        tag for tag in tags if re.search(r'hx-trigger="[^"]*\b(poll|every|load|revealed)\b', tag)
    ]
    assert by_themselves
    assert all(re.search(r"hx-get=.?\{%.*url 'live' ", tag) for tag in by_themselves), by_themselves


def test_signing_in_takes_a_new_key(ada: User, client: Client) -> None:
    planted = client.session
    planted["mine"] = True
    planted.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = planted.session_key or ""
    client.post("/login", {"username": "ada", "password": "correct horse battery"})
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != planted.session_key
    assert not sessions.SessionStore().exists(planted.session_key or "")


def test_signing_out_ends_it_on_the_server(browser: Client) -> None:
    copied = browser.cookies[settings.SESSION_COOKIE_NAME].value
    browser.post("/logout")
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = copied
    assert not is_signed_in(thief)
    assert not Session.objects.exists()


def test_the_database_does_not_know_a_key(browser: Client) -> None:
    assert browser.cookies[settings.SESSION_COOKIE_NAME].value not in str(list(Session.objects.values()))


def test_the_tick_forgets_what_is_over(browser: Client, admin: User) -> None:
    aged(active=9 * HOUR)
    browser_of(admin)
    assert sessions.forget(now=timezone.now()) == 1


# --- what ends all of a person's ----------------------------------------------------------------------------


def _bind(ada: User) -> RoleBinding:
    return access.bind_role(role=Role.VIEWER, user=ada, by=SYSTEM, now=timezone.now())


def _new_password(ada: User) -> None:
    ada.set_password("another horse battery")
    ada.save()


def _switch_off(ada: User) -> None:
    ada.is_active = False
    ada.save()


def _narrow(ada: User) -> None:
    binding = ada.role_bindings.get()
    binding.namespaces = ["shop"]
    binding.save()


def _group() -> Group:
    return Group.objects.get_or_create(name="sre")[0]


def _hand_over(ada: User) -> None:
    binding = ada.role_bindings.get()
    binding.user = User.objects.get(username="root")
    binding.save()


CHANGES: dict[str, Callable[[User], object]] = {
    "a new password": _new_password,
    "switched off": _switch_off,
    "deleted": lambda ada: ada.delete(),
    "a role given": _bind,
    "a role taken": lambda ada: ada.role_bindings.all().delete(),
    "a role narrowed to a namespace": _narrow,
    "a role narrowed to a cluster": lambda ada: ada.role_bindings.get().clusters.set([make_cluster()]),
    "a role in every cluster again": lambda ada: ada.role_bindings.get().clusters.clear(),
    "handed to somebody else": _hand_over,
    "a group joined": lambda ada: ada.groups.add(_group()),
    "taken into a group": lambda ada: _group().user_set.add(ada, through_defaults={}),
}
IN_A_GROUP: dict[str, Callable[[User], object]] = {
    "the group left": lambda ada: ada.groups.remove(_group()),
    "all groups left": lambda ada: ada.groups.clear(),
    "the group emptied": lambda ada: _group().user_set.clear(),
    "the group's role given": lambda ada: access.bind_role(
        role=Role.ADMIN, group=_group(), by=SYSTEM, now=timezone.now()
    ),
    "the group's role taken": lambda ada: RoleBinding.objects.filter(group=_group()).delete(),
    "the group deleted": lambda ada: _group().delete(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_person_may_changes_and_all_their_sessions_end(ada: User, admin: User, change: str) -> None:
    browsers = [browser_of(ada), browser_of(ada)]
    CHANGES[change](ada)
    assert not Session.objects.filter(account_id=ada.pk).exists()
    assert not any(is_signed_in(browser) for browser in browsers)


@pytest.mark.parametrize("change", IN_A_GROUP)
def test_so_does_what_their_group_may(ada: User, change: str) -> None:
    ada.groups.add(_group())
    RoleBinding.objects.create(group=_group(), role=Role.VIEWER)
    browser = browser_of(ada)
    IN_A_GROUP[change](ada)
    assert not is_signed_in(browser)


def test_everybody_elses_go_on(ada: User, viewer: User) -> None:
    browser = browser_of(viewer)
    _bind(ada)
    _new_password(ada)
    assert is_signed_in(browser)


def test_signing_in_elsewhere_ends_nothing(ada: User, browser: Client) -> None:
    Client().post("/login", {"username": "ada", "password": "correct horse battery"})
    assert is_signed_in(browser)


def test_an_admin_who_changes_their_own_rights_signs_in_again(admin: User, cluster: Cluster) -> None:
    browser = browser_of(admin)
    answer = browser.post("/settings/", {"what": "bind", "whom": f"user:{admin.pk}", "role": "viewer"})
    assert answer["Location"].startswith("/login?because=ended&next=")
    assert "Your session has ended" in browser.get(answer["Location"]).content.decode()
    assert admin.role_bindings.count() == 2


def test_a_session_that_ends_while_its_page_is_made_leads_to_the_sign_in(
    admin: User, cluster: Cluster
) -> None:
    root = make_user("zoe", Role.ADMIN)
    mine, theirs = browser_of(admin), browser_of(root)
    theirs.post("/settings/", {"what": "unbind", "pk": admin.role_bindings.get().pk})
    assert mine.post("/settings/", {"what": "prefer"})["Location"].startswith("/login?next=")

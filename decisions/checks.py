"""Django system checks: what only the database shows about whether this installation may start.

``deschedui.E001`` the demo's people can sign in. What the environment shows is refused before: ``deschedui.refusals``.
They belong to ``manage.py check --deploy`` and to the start of web, worker and beat; every other command runs without
them, or nobody could put right what they complain about.
"""

import logging
import multiprocessing
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.checks import CheckMessage, Error, register
from django.db import DatabaseError, InterfaceError, connections

from deschedui.demo import people
from deschedui.refusals import sqlite_objection

_SHOWN = 5

log = logging.getLogger(__name__)


@register("deschedui", deploy=True)
def demo_people(**_: Any) -> list[CheckMessage]:
    """``deschedui.E001``: everybody knows the demo's password; its people must not be able to sign in elsewhere."""
    if settings.ENV.demo:
        return []
    try:
        names = _of_the_demo()
    except (DatabaseError, InterfaceError) as error:
        log.warning("the database cannot be asked whether the demo's people are in it: %s", error)
        return []
    return [_demo_error(names)] if names else []


def _of_the_demo() -> list[str]:
    """Who is marked as the demo's; and, marked or not, who has one of its names with its password."""
    active = User.objects.filter(is_active=True)
    marked = set(active.filter(groups__name=people.GROUP).values_list("username", flat=True)[:100])
    named = active.filter(username__in=[name for name, _ in people.USERS]).exclude(username__in=marked)
    return sorted(marked | {user.username for user in named if user.check_password(people.PASSWORD)})


def _demo_error(names: list[str]) -> CheckMessage:
    shown = ", ".join(names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
    return Error(
        f"DESCHEDUI_DATABASE_URL: this database has the demo's people ({shown}), whose password everybody knows.",
        hint="Take another database, or run: manage.py seed_demo --remove",
        id="deschedui.E001",
    )


@register("deschedui", deploy=True)
def one_web_process(**_: Any) -> list[CheckMessage]:
    """``deschedui.E002``: a server that started several of us, whatever the environment says, on SQLite."""
    several = 2 if multiprocessing.parent_process() is not None and not settings.ENV.demo else 1
    return [Error(text, id="deschedui.E002") for text in sqlite_objection(settings.ENV.database_url, several)]


def refuse_start(what: str) -> None:
    """End this process where one of the checks says so; all of them are told on standard error.

    Raises:
        SystemExit: with code 1. The text is written here, to the real standard error: Celery puts another in its
            place and swallows the text of an exit.
    """
    found = _in_a_thread(what)
    if found:
        (sys.__stderr__ or sys.stderr).write("\n".join([f"deschedui {what} cannot start:", *found, ""]))
        raise SystemExit(1)


def _in_a_thread(what: str) -> list[str]:
    """A server imports us within its event loop, where Django refuses the database; and no connection stays open."""
    with ThreadPoolExecutor(1, thread_name_prefix="start-check") as pool:
        return pool.submit(_sentences, what).result()


def _sentences(what: str) -> list[str]:
    checks = [demo_people, *([one_web_process] if what == "web" else [])]
    try:
        messages: Iterable[CheckMessage] = [message for check in checks for message in check()]
        return [f"{each.id} {each.msg} {each.hint or ''}".rstrip() for each in messages]
    finally:
        connections.close_all()

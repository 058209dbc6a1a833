"""What only the database shows: the demo's people can sign in. Web, worker and beat do not start then."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import override_settings

from decisions.checks import demo_people
from deschedui.config import ROOT
from deschedui.demo import people
from deschedui.demo.people import PASSWORD
from tests.builders import make_user


def environment_with(**fields: Any) -> override_settings:
    """The product in another environment."""
    return override_settings(ENV=settings.ENV.model_copy(update=fields))


def a_demo_user(**fields: Any) -> User:
    user = make_user("somebody")
    user.groups.add(Group.objects.get_or_create(name=people.GROUP)[0])
    User.objects.filter(pk=user.pk).update(**fields)
    return user


def test_a_database_without_the_demos_people_may_be_used(db: None) -> None:
    make_user("root")
    assert demo_people() == []


def test_whom_the_demo_made_is_refused(db: None) -> None:
    a_demo_user()
    [error] = demo_people()
    assert (error.id, error.is_serious()) == ("deschedui.E001", True)
    assert error.msg.startswith("DESCHEDUI_DATABASE_URL: this database has the demo's people (somebody)")


def test_so_is_one_of_its_names_with_its_password(db: None) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    assert "(ada)" in demo_people()[0].msg


def test_who_cannot_sign_in_does_no_harm(db: None) -> None:
    a_demo_user(is_active=False)
    assert demo_people() == []


def test_in_the_demo_they_belong_there(db: None) -> None:
    a_demo_user()
    with environment_with(demo=True):
        assert demo_people() == []


def test_they_are_kept_out_by_a_command(db: None) -> None:
    a_demo_user()
    mine = make_user("ada")
    call_command("seed_demo", "--remove", verbosity=0)
    mine.refresh_from_db()
    assert (demo_people(), mine.is_active) == ([], True)


def test_the_demo_is_not_seeded_elsewhere(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="DESCHEDUI_DEMO is off"):
        call_command("seed_demo", "--token-file", str(tmp_path / "token"))


def test_several_processes_on_sqlite_are_refused_by_serve() -> None:
    with (
        environment_with(database_url="sqlite:////tmp/x"),
        pytest.raises(CommandError, match="DESCHEDUI_WEB_PROCESSES: 2 web processes"),
    ):
        call_command("serve", "--workers", "2")


# --- every way to start -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of an installation whose database was the demo's once."""
    folder = tmp_path_factory.mktemp("was-a-demo")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DESCHEDUI_INSTALLATION_ID": "5f0c1b2a3d4e5f60718293a4b5c6d7e8",
        "DESCHEDUI_SECRET_KEY": "7Qp_l2Gz8m-3Vx5Rk9Tn4Wb6Yc1Hd0Jf7Qp_l2Gz8m-3Vx5Rk9",
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{folder / 'deschedui.sqlite3'}",
        "DESCHEDUI_BROKER_URL": f"filesystem://{folder / 'broker'}",
        "DESCHEDUI_STATIC_ROOT": str(folder / "static"),
    }
    made = run(environment, "manage.py", "migrate", "--verbosity", "0")
    assert made.returncode == 0, made.stderr
    seed = (
        f"from django.contrib.auth.models import User; User.objects.create_user('ada', password={PASSWORD!r})"
    )
    assert run(environment, "manage.py", "shell", "-v0", "-c", seed).returncode == 0
    return environment


def run(environment: dict[str, str], *argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *argv],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.parametrize(
    "argv",
    [
        ("-m", "uvicorn", "deschedui.asgi:application", "--port", "1"),
        ("-m", "celery", "-A", "deschedui", "worker", "-P", "threads", "-c", "1"),
        ("-m", "celery", "-A", "deschedui", "beat", "--schedule", "{folder}/schedule"),
        ("manage.py", "serve", "--port", "1"),
        ("manage.py", "check", "--deploy"),
    ],
    ids=["web", "worker", "beat", "serve", "check"],
)
def test_no_process_starts_with_the_demos_people(environment: dict[str, str], argv: tuple[str, ...]) -> None:
    ended = run(environment, *(word.format(folder=environment["HOME"]) for word in argv))
    assert ended.returncode not in {0, None}
    assert "deschedui.E001" in ended.stderr
    assert "DESCHEDUI_DATABASE_URL" in ended.stderr


@pytest.mark.parametrize(
    "argv",
    [("-c", "import deschedui.asgi"), ("-m", "celery", "-A", "deschedui", "worker"), ("manage.py", "serve")],
    ids=["web", "worker", "serve"],
)
def test_no_process_starts_with_debug(environment: dict[str, str], argv: tuple[str, ...]) -> None:
    ended = run({**environment, "DESCHEDUI_DEBUG": "1"}, *argv)
    assert ended.returncode not in {0, None}
    assert "DESCHEDUI_DEBUG: must be off" in ended.stderr + ended.stdout


def test_one_of_several_web_processes_on_sqlite_ends(environment: dict[str, str], tmp_path: Path) -> None:
    # As `uvicorn --workers 2` starts them, whatever the environment says.
    code = (
        "import importlib, multiprocessing, sys; "
        "child = multiprocessing.get_context('spawn').Process("
        "target=importlib.import_module, args=('deschedui.asgi',)); "
        "child.start(); child.join(); sys.exit(child.exitcode)"
    )
    database = {"DESCHEDUI_DATABASE_URL": f"sqlite:///{tmp_path / 'deschedui.sqlite3'}"}
    ended = run({**environment, **database}, "-c", code)
    assert ended.returncode == 1
    assert "deschedui.E002 DESCHEDUI_WEB_PROCESSES" in ended.stderr

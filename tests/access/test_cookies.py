"""Cookies: two of them, which no script reads; by HTTPS with the prefix that binds them to this host."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from decisions.models import Cluster
from deschedui.config import ROOT
from tests.web.conftest import browser_of

KINDS = ("SESSION", "CSRF")
FIELDS = ("NAME", "SECURE", "HTTPONLY", "SAMESITE", "PATH", "DOMAIN")
ASK = f"""
import json
from deschedui import settings
cookies = [[getattr(settings, f"{{kind}}_COOKIE_{{field}}") for field in {FIELDS}] for kind in {KINDS}]
print("found", json.dumps(cookies))
"""


def cookies_of(folder: Path, **variables: str) -> list[Any]:
    """Session and CSRF cookie of an installation with these variables."""
    environment = {
        "PATH": os.environ["PATH"],
        "DESCHEDUI_DEMO": "1",
        "DESCHEDUI_SECRET_KEY": "7Qp_l2Gz8m-3Vx5Rk9Tn4Wb6Yc1Hd0Jf7Qp_l2Gz8m-3Vx5Rk9",
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{folder / 'deschedui.sqlite3'}",
        **{f"DESCHEDUI_{name}": value for name, value in variables.items()},
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout.partition("found ")[2]))


@pytest.mark.parametrize("how", [{"BEHIND_HTTPS": "1"}, {"PUBLIC_URL": "https://deschedui.example"}])
def test_by_https_they_are_this_hosts_alone(tmp_path: Path, how: dict[str, str]) -> None:
    assert cookies_of(tmp_path, **how) == [
        ["__Host-deschedui-session", True, True, "Lax", "/", None],
        ["__Host-deschedui-csrf", True, True, "Lax", "/", None],
    ]


def test_without_https_they_bear_no_prefix_that_a_browser_would_refuse(tmp_path: Path) -> None:
    assert cookies_of(tmp_path) == [
        ["deschedui-session", False, True, "Lax", "/", None],
        ["deschedui-csrf", False, True, "Lax", "/", None],
    ]


def test_there_are_two_and_no_script_reads_them(ada: User, cluster: Cluster) -> None:
    browser = Client()
    browser.get("/login")
    browser.post("/login", {"username": "ada", "password": "correct horse battery"})
    browser.post("/settings/", {"what": "prefer"}, follow=True)
    assert set(browser.cookies) == {settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME}
    for cookie in browser.cookies.values():
        assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (
            True,
            "Lax",
            "/",
            "",
        )


def test_the_pages_scripts_take_the_token_from_the_page(ada: User, cluster: Cluster) -> None:
    page = browser_of(ada).get("/").content.decode()
    assert 'hx-headers=\'{"X-CSRFToken": "' in page
    scripts = (ROOT / "decisions" / "static").rglob("*.js")
    assert not any("document.cookie" in script.read_text(encoding="utf-8") for script in scripts)

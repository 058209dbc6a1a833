"""Behind a proxy that ends TLS: http is sent on to https and browsers stay there; probes are answered as they come."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from deschedui.config import ROOT

ASK = (
    "import json, django; from django.conf import settings as s; django.setup(); "
    "print('found', json.dumps([s.SECURE_SSL_REDIRECT, s.SECURE_HSTS_SECONDS, s.SECURE_HSTS_INCLUDE_SUBDOMAINS, "
    "s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SECURE_PROXY_SSL_HEADER, s.SECURE_REDIRECT_EXEMPT]))"
)


def settings_with(folder: Path, **variables: str) -> list[Any]:
    """The settings that depend on it, of an installation with these variables."""
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "deschedui.settings",
        "DESCHEDUI_SECRET_KEY": "7Qp_l2Gz8m-3Vx5Rk9Tn4Wb6Yc1Hd0Jf7Qp_l2Gz8m-3Vx5Rk9",
        "DESCHEDUI_INSTALLATION_ID": "5f0c1b2a3d4e5f60718293a4b5c6d7e8",
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{folder / 'deschedui.sqlite3'}",
        **{f"DESCHEDUI_{name}": value for name, value in variables.items()},
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout.partition("found ")[2]))


def test_behind_https_everything_is_by_https(tmp_path: Path) -> None:
    redirect, seconds, subdomains, *cookies, header, exempt = settings_with(tmp_path, BEHIND_HTTPS="1")
    assert (redirect, seconds, subdomains, cookies) == (True, 365 * 24 * 3600, True, [True, True])
    assert (header, exempt) == (["HTTP_X_FORWARDED_PROTO", "https"], ["^healthz$", "^livez$"])


def test_without_it_no_header_of_a_stranger_is_believed(tmp_path: Path) -> None:
    redirect, seconds, *_, header, _ = settings_with(tmp_path)
    assert (redirect, seconds, header) == (False, 0, None)


def test_how_long_browsers_insist_is_a_setting(tmp_path: Path) -> None:
    assert settings_with(tmp_path, BEHIND_HTTPS="1", HSTS_SECONDS="60")[1] == 60


@pytest.fixture
def browser() -> Client:
    return Client()


BEHIND = {
    "SECURE_SSL_REDIRECT": True,
    "SECURE_HSTS_SECONDS": 60,
    "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
}


@override_settings(**BEHIND)
def test_http_is_sent_on_to_https(browser: Client) -> None:
    answer = browser.get("/policy/?version=1")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/policy/?version=1")


@pytest.mark.django_db
@override_settings(**BEHIND)
def test_by_https_the_browser_is_told_to_stay(browser: Client) -> None:
    answer = browser.get("/login", headers={"X-Forwarded-Proto": "https"})
    assert (answer.status_code, answer["Strict-Transport-Security"][:10]) == (200, "max-age=60")


@pytest.mark.django_db
@override_settings(**BEHIND)
@pytest.mark.parametrize("probe", ["/healthz", "/livez"])
def test_a_probe_past_the_proxy_is_answered(browser: Client, probe: str) -> None:
    assert browser.get(probe).status_code in {200, 503}

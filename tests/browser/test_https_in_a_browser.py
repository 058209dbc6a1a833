"""Pages by real TLS, behind a proxy that ends it: Chromium takes the ``__Host-`` cookies, and everything works."""

import http.client
import http.server
import os
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Browser, Page, expect

from decisions.models import Decision, Verdict
from deschedui import supervisor
from deschedui.config import ROOT
from tests.real.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.real]
KEPT_BY_THE_PROXY = {"connection", "transfer-encoding", "content-length"}


class Proxy(http.server.BaseHTTPRequestHandler):
    """What stands before web: ends TLS, says so, and adds its peer to X-Forwarded-For."""

    port = 0

    def do_GET(self) -> None:
        """Hand one request on and its answer back."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = dict(self.headers.items())
        told = {
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": self.client_address[0],
            "Connection": "close",
        }
        web = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        web.request(self.command, self.path, body or None, {**headers, **told})
        answer = web.getresponse()
        content = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in KEPT_BY_THE_PROXY:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        web.close()

    def do_POST(self) -> None:
        """The same."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


class Endpoint(http.server.ThreadingHTTPServer):
    """Says nothing of connections that end within the handshake: a browser opens some to see the certificate."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def proxy() -> Iterator[Endpoint]:
    """An HTTPS endpoint on a port of its own, with web's port to be."""
    handler = type("ToWeb", (Proxy,), {"port": free_port()})
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    server = Endpoint(("127.0.0.1", 0), handler)
    # The handshake is the handler's thread's: a browser opens connections that it does not use.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def environment(folder: Path, url: str) -> dict[str, str]:
    """An installation behind HTTPS, no demo, on the tests' database."""
    return {
        "PATH": os.environ["PATH"],
        "DESCHEDUI_SECRET_KEY": secrets.token_urlsafe(48),
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "DESCHEDUI_BROKER_URL": f"filesystem://{folder / 'broker'}",
        "DESCHEDUI_STATIC_ROOT": str(folder / "static"),
        "DESCHEDUI_INSTALLATION_ID": settings.INSTALLATION_ID,
        "DESCHEDUI_BEHIND_HTTPS": "1",
        "DESCHEDUI_PUBLIC_URL": url,
        "DESCHEDUI_ALLOWED_HOSTS": "localhost",
        "DESCHEDUI_TRUSTED_PROXIES": "1",
    }


def is_up(port: int) -> bool:
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        web.request("GET", "/livez", headers={"Host": "localhost"})
        return web.getresponse().status == 200
    except OSError:
        return False
    finally:
        web.close()


@pytest.fixture
def url(proxy: Any, tmp_path: Path, transactional_db: None) -> Iterator[str]:
    """Where people open it: the application as it is deployed, behind the proxy."""
    if connection.vendor != "sqlite":
        pytest.skip("the second process reads the tests' SQLite file")
    port, address = proxy.RequestHandlerClass.port, f"https://localhost:{proxy.server_address[1]}"
    with (tmp_path / "web.log").open("wb") as log:
        web = subprocess.Popen(
            supervisor.web(port).argv,
            env=environment(tmp_path, address),
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + 60
            while not is_up(port):
                assert web.poll() is None, (tmp_path / "web.log").read_text(encoding="utf-8")
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield address
        finally:
            web.terminate()
            web.wait(timeout=20)


@pytest.fixture
def page(chromium: Browser, url: str) -> Iterator[Page]:
    """Nobody is signed in yet."""
    context = chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def approver(ada: User) -> User:
    """An approver whose password is kept as an installation does: the tests' quick hash is unknown to it."""
    kept = PBKDF2PasswordHasher().encode("correct horse battery", "salt-of-the-tests")
    User.objects.filter(pk=ada.pk).update(password=kept)
    return ada


def cookies(page: Page) -> dict[str, tuple[object, ...]]:
    """What Chromium has kept of each cookie; of its domain, that it is this host alone (no leading dot)."""
    found = page.context.cookies()
    fields = ("secure", "httpOnly", "sameSite", "path", "domain")
    return {str(each.get("name")): tuple(each.get(field) for field in fields) for each in found}


def test_by_tls_one_signs_in_approves_and_signs_out(
    page: Page, url: str, approver: User, waiting: Callable[..., Decision]
) -> None:
    decision = waiting()
    page.goto(f"{url}/d/{decision.pk}/")
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("#decision")).to_contain_text("Approved by ada")
    assert Decision.objects.get(pk=decision.pk).verdict == Verdict.ALLOWED
    closed = (True, True, "Lax", "/", "localhost")
    assert cookies(page) == {"__Host-deschedui-session": closed, "__Host-deschedui-csrf": closed}
    assert page.evaluate("document.cookie") == ""
    page.locator(".person summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("User name").wait_for()
    assert "__Host-deschedui-session" not in cookies(page)
    page.goto(f"{url}/d/{decision.pk}/")
    expect(page).to_have_url(f"{url}/login?next=/d/{decision.pk}/")

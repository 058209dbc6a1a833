"""Connections: service account, kubeconfig, token files, exec plugins, and files that are wrong."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from pathlib import Path

import pytest
import trustme
import urllib3

from deschedui.kube.budget import Budget
from deschedui.kube.client import ClusterClient, Timeouts
from deschedui.kube.config import Access, ClusterConnection, load
from deschedui.kube.errors import ConfigError, TimedOut, Unauthorized, Unreachable
from deschedui.kube.wire import Wire
from tests.kube.conftest import TOKEN, Connect, write_kubeconfig
from tests.kube.server import Answer, serving, status

VERSION = Answer(body={"gitVersion": "v1.37.2"})


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account's folder."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("first\n", encoding="utf-8")
    return tmp_path


IN_CLUSTER = ClusterConnection("prod", in_cluster=True)
PLACE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_the_service_account_says_where_and_who(account: Path, clock: Clock) -> None:
    access = load(IN_CLUSTER, environ=PLACE, service_account=account, clock=clock)
    assert (access.host, access.authorization()) == ("https://10.0.0.1:443", "Bearer first")


def test_a_rotated_token_is_read_within_a_minute(account: Path, clock: Clock) -> None:
    access = load(IN_CLUSTER, environ=PLACE, service_account=account, clock=clock)
    access.authorization()
    (account / "token").write_text("second", encoding="utf-8")
    assert access.authorization() == "Bearer first"
    clock.now += 60
    assert access.authorization() == "Bearer second"


@pytest.mark.parametrize("content", ["", "  \n"])
def test_a_token_file_that_became_empty_is_an_error(account: Path, clock: Clock, content: str) -> None:
    access = load(IN_CLUSTER, environ=PLACE, service_account=account, clock=clock)
    (account / "token").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="empty"):
        access.authorization()


def test_outside_a_pod_there_is_no_service_account(account: Path) -> None:
    with pytest.raises(ConfigError, match=r"prod .*Service host/port is not set"):
        load(IN_CLUSTER, environ={}, service_account=account)


def test_the_named_context_is_used(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "kubeconfig", "https://10.0.0.9:6443")
    access = load(ClusterConnection("shop", kubeconfig=str(path), context="only"))
    assert (access.host, access.authorization()) == ("https://10.0.0.9:6443", f"Bearer {TOKEN}")


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "kubeconfig", "https://10.0.0.9:6443")
    with pytest.raises(ConfigError, match="context other"):
        load(ClusterConnection("shop", kubeconfig=str(path), context="other"))


def test_kubeconfig_of_the_environment_is_used_where_none_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "elsewhere", "https://10.0.0.9:6443")
    assert load(ClusterConnection("shop"), environ={"KUBECONFIG": str(path)}).host == "https://10.0.0.9:6443"


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such kubeconfig: .*nowhere"):
        load(ClusterConnection("shop", kubeconfig=str(tmp_path / "nowhere")))


BROKEN = {
    "no YAML": "{{{",
    "a list": "[1, 2]",
    "a text": "hello",
    "empty": "",
    "no contexts": "{current-context: x, users: [{name: u, user: {token: TOKEN}}]}",
    "no cluster": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: [],"
        " users: [{name: u, user: {token: TOKEN}}]}"
    ),
    "a user without a name": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://x'}}], users: [{user: {token: TOKEN}}]}"
    ),
    "a CA that is no base64": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://x', certificate-authority-data: 'a'}}],"
        " users: [{name: u, user: {token: TOKEN}}]}"
    ),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_kubeconfig_is_a_config_error_without_its_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "kubeconfig"
    path.write_text(text.replace("TOKEN", TOKEN), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(ClusterConnection("shop", kubeconfig=str(path)))
    assert "cluster shop" in str(refused.value)
    assert TOKEN not in str(refused.value) + caplog.text


def test_a_token_file_is_relative_to_its_kubeconfig_and_read_again(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "tok").write_text("first", encoding="utf-8")
    path = write_kubeconfig(tmp_path / "kubeconfig", "http://10.0.0.9", {"tokenFile": "tok"})
    access = load(ClusterConnection("shop", kubeconfig=str(path)), clock=clock)
    assert access.authorization() == "Bearer first"
    (tmp_path / "tok").write_text("second", encoding="utf-8")
    clock.now += 60
    assert access.authorization() == "Bearer second"


def plugin(folder: Path, answer: object, *, code: int = 0) -> dict[str, object]:
    """An exec plugin that prints this answer."""
    script = folder / "plugin.py"
    script.write_text(
        f"import sys; print({json.dumps(json.dumps(answer))}); sys.exit({code})", encoding="utf-8"
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
        }
    }


def credential(token: str) -> dict[str, object]:
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }


def test_an_exec_plugin_gives_the_token(connect: Connect, tmp_path: Path) -> None:
    with serving(VERSION) as server:
        connect(server.url, user=plugin(tmp_path, credential("from-plugin"))).check()
    assert server.requests[0].headers["authorization"] == "Bearer from-plugin"


def test_an_exec_plugin_that_fails_is_an_error_and_not_an_anonymous_call(
    connect: Connect, tmp_path: Path
) -> None:
    with serving(VERSION) as server:
        with pytest.raises(ConfigError, match="gave no credentials"):
            connect(server.url, user=plugin(tmp_path, {}, code=1)).check()
        assert server.requests == []


def test_refused_credentials_are_loaded_anew_but_not_in_a_storm(tmp_path: Path, clock: Clock) -> None:
    with serving(status(401)) as server:
        path = write_kubeconfig(tmp_path / "kubeconfig", server.url)
        loads: list[int] = []

        def counted() -> object:
            loads.append(1)
            return load(ClusterConnection("shop", kubeconfig=str(path)))

        client = ClusterClient(Wire(counted, clock=clock), budget=Budget())  # type: ignore[arg-type]
        for _ in range(3):
            with pytest.raises(Unauthorized):
                client.check()
        assert len(loads) == 1
        clock.now += 10
        with pytest.raises(Unauthorized):
            client.check()
        with pytest.raises(Unauthorized):
            client.check()
        assert len(loads) == 2


def test_a_certificate_that_is_not_trusted_is_unreachable_by_tls(connect: Connect) -> None:
    with (
        serving(Answer(raw=b"HTTP/1.0 400 Bad Request\r\n\r\n")) as server,
        pytest.raises(Unreachable, match="TLS"),
    ):
        connect(server.url.replace("http:", "https:"), timeouts=Timeouts(read=1)).check()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
)
def test_a_proxy_of_the_environment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    path = write_kubeconfig(tmp_path / "kubeconfig", f"{scheme}://api.example.com")
    access = load(ClusterConnection("shop", kubeconfig=str(path)))
    assert not isinstance(access.pool, urllib3.ProxyManager)
    assert access.configuration.proxy is None


def test_nor_on_the_way_to_this_machine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(VERSION) as server:
        assert connect(server.url).check() == "v1.37.2"


def test_a_netrc_of_the_environment_is_not_used(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(VERSION) as server:
        connect(server.url).check()
        assert "basic" not in server.requests[0].headers.get("authorization", "").lower()


def test_a_proxy_of_the_kubeconfig_is_used(tmp_path: Path) -> None:
    with serving(VERSION) as proxy:
        path = write_kubeconfig(tmp_path / "kubeconfig", "http://api.example.com")
        config = json.loads(path.read_text(encoding="utf-8"))
        config["clusters"][0]["cluster"]["proxy-url"] = proxy.url
        path.write_text(json.dumps(config), encoding="utf-8")
        ClusterClient.connect(ClusterConnection("shop", kubeconfig=str(path)), budget=Budget()).check()
    assert proxy.requests[0].target == "http://api.example.com/version"


def test_loading_that_hangs_holds_nobody_up_but_its_calls() -> None:
    never = threading.Event()

    def hang() -> Access:
        never.wait(20)
        raise ConfigError("too late")

    client = ClusterClient(Wire(hang), budget=Budget(), timeouts=Timeouts(read=0.1))
    for _ in range(2):
        with pytest.raises(TimedOut):
            client.check()
    started = time.monotonic()
    client.close()
    assert time.monotonic() - started < 5
    never.set()

"""The API server as a process, and what only it does."""

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from deschedui.demo.apiserver.app import MAX_BODY, App
from deschedui.demo.apiserver.calls import Call
from deschedui.demo.apiserver.certificate import Identity, self_signed
from deschedui.demo.apiserver.reading import watch
from deschedui.demo.apiserver.resources import PODS
from deschedui.demo.apiserver.store import HISTORY, Store
from tests.demo.cluster import Cluster

COMMAND = [sys.executable, "-m", "deschedui.demo.apiserver", "--empty"]


def test_it_tells_how_to_reach_it_and_ends_when_told(tmp_path: Path) -> None:
    ready, kubeconfig = tmp_path / "ready.json", tmp_path / "kubeconfig"
    command = [*COMMAND, "--token", "t", "--ready-file", str(ready), "--kubeconfig", str(kubeconfig)]
    with _running(command) as process:
        _wait_for(ready, process)
        told = json.loads(ready.read_text())
        assert _get(told, "/api/v1/namespaces")["kind"] == "NamespaceList"
        process.terminate()
        assert process.wait(5) == -signal.SIGTERM
    assert yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == told["url"]
    assert (ready.stat().st_mode | kubeconfig.stat().st_mode) & 0o077 == 0


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for(ready: Path, process: subprocess.Popen[bytes]) -> None:
    while not ready.exists():
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"the API server ended with {process.returncode}")


def _get(told: dict[str, Any], path: str) -> Any:
    context = ssl.create_default_context(cadata=told["certificateAuthority"])
    request = urllib.request.Request(told["url"] + path, headers={"Authorization": f"Bearer {told['token']}"})
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return json.load(answer)


def test_a_taken_port_ends_it_with_a_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*COMMAND, "--port", port], capture_output=True, text=True, timeout=30, check=False
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f"port {port} on 127.0.0.1 is taken: choose another with --port"
    )


@pytest.fixture(scope="module")
def identity() -> Identity:
    return self_signed()


def test_the_certificate_is_good_for_loopback(identity: Identity, tmp_path: Path) -> None:
    assert _handshake(identity, tmp_path, "127.0.0.1")["subjectAltName"] == (
        ("IP Address", "127.0.0.1"),
        ("DNS", "localhost"),
    )


def test_the_certificate_is_good_for_nothing_else(identity: Identity, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(identity, tmp_path, "example.org")


def _handshake(identity: Identity, folder: Path, name: str) -> dict[str, Any]:
    """A handshake in memory; the certificate as a strict client sees it."""
    certificate, key = folder / "crt", folder / "key"
    certificate.write_text(identity.certificate)
    key.write_text(identity.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    careful = ssl.create_default_context(cadata=identity.certificate)
    careful.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = careful.wrap_bio(to_client, to_server, server_hostname=name)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return dict(client.getpeercert() or {})


async def first(lines: AsyncIterator[bytes]) -> Any:
    async for line in lines:
        return json.loads(line)
    return None


def test_a_watch_from_too_long_ago_has_expired() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart")
    cluster.pass_time()
    cluster.store.compact()
    event = asyncio.run(first(watch(cluster.store, Call(PODS, query={"watch": "1", "resourceVersion": "2"}))))
    assert event["type"] == "ERROR"
    assert event["object"]["message"] == f"too old resource version: 2 ({cluster.store.revision})"
    assert (event["object"]["reason"], event["object"]["code"]) == ("Expired", 410)


def test_the_history_is_bounded() -> None:
    store = Store()
    for number in range(HISTORY + 5):
        store.put(PODS, {"metadata": {"name": f"p-{number}", "namespace": "x"}})
    assert len(store.table(PODS).changes) == HISTORY
    assert store.at(PODS, 2) is None
    assert store.at(PODS, store.revision - 1) is not None


@pytest.mark.parametrize(
    "body", [b'{"metadata": {"name": "p"}, "spec": [1]}', b'{"metadata": {"name": 7}, "spec": {}}']
)
def test_an_object_of_a_strange_shape_is_refused_and_the_server_goes_on(body: bytes) -> None:
    app = App(Cluster().store, {"t": "admin"})
    status, answer = asyncio.run(ask(app, "POST", "/api/v1/namespaces/shop/pods", body))
    assert (status, answer["reason"]) == (500, "InternalError")
    assert asyncio.run(ask(app, "GET", "/api/v1/namespaces/shop/pods"))[0] == 200


def test_a_body_that_is_too_large_is_refused() -> None:
    app = App(Cluster().store, {"t": "admin"})
    status, answer = asyncio.run(ask(app, "POST", "/api/v1/namespaces/shop/pods", b" " * (MAX_BODY + 1)))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")


async def ask(app: App, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    """One request without a network: status and body."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", b"Bearer t")]
    await app(
        {"type": "http", "path": path, "method": method, "headers": headers, "query_string": b""},
        receive,
        send,
    )
    return sent[0]["status"], json.loads(sent[1]["body"])

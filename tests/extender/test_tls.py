"""Encrypted connections: what is verified, and which check is named when it fails."""

import datetime as dt
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest
import trustme

from deschedui.extender.client import ExtenderClient, FileRules
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode
from tests.extender.builders import args, ask_one, question
from tests.extender.servers import answering, serving, then_closing

AUTHORITY = trustme.CA()
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def server_context(
    *names: str, not_after: dt.datetime | None = None, issuer: trustme.CA = AUTHORITY
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert(*names, not_after=not_after).configure_cert(context)
    return context


@pytest.fixture
def rules(tmp_path: Path) -> FileRules:
    """A folder with the authority's certificate and a client's certificate and key."""
    AUTHORITY.cert_pem.write_to_path(tmp_path / "ca.crt")
    client = AUTHORITY.issue_cert("deschedui.test")
    client.cert_chain_pems[0].write_to_path(tmp_path / "client.crt")
    client.private_key_pem.write_to_path(tmp_path / "client.key")
    return FileRules(folder=tmp_path)


def asked(context: ssl.SSLContext, rules: FileRules, **tls: str) -> ExtenderOutcome:
    with serving(answering(), context) as server:
        given = args(urlPrefix=server.url, tlsConfig={"caCertFile": "ca.crt", **tls})
        with ExtenderClient([given], files=rules) as client:
            return ask_one(client)


def test_a_certificate_of_the_named_authority_is_good(rules: FileRules) -> None:
    assert asked(server_context("127.0.0.1"), rules).effect is Effect.ALLOW


def test_server_name_is_what_is_asked_for_and_verified(rules: FileRules) -> None:
    context = server_context("ext.internal")
    named: list[str | None] = []
    context.sni_callback = lambda sock, name, ctx: named.append(name)
    assert asked(context, rules, serverName="ext.internal").effect is Effect.ALLOW
    assert named == ["ext.internal"]


def test_another_name_is_refused(rules: FileRules) -> None:
    said = asked(server_context("other.test"), rules)
    assert said.failure_mode is FailureMode.TLS
    assert said.detail.startswith('the certificate of "127.0.0.1" was refused: ')
    assert "mismatch" in said.detail


def test_a_wrong_server_name_is_refused_by_that_name(rules: FileRules) -> None:
    said = asked(server_context("127.0.0.1"), rules, serverName="ext.internal")
    assert (said.failure_mode, '"ext.internal"' in said.detail) == (FailureMode.TLS, True)


def test_an_expired_certificate_is_refused(rules: FileRules) -> None:
    said = asked(server_context("127.0.0.1", not_after=LONG_AGO), rules)
    assert said.failure_mode is FailureMode.TLS
    assert said.detail.endswith("certificate has expired")


def test_an_unknown_authority_is_refused(rules: FileRules) -> None:
    said = asked(server_context("127.0.0.1", issuer=trustme.CA()), rules)
    assert said.failure_mode is FailureMode.TLS
    assert "certificate" in said.detail


def test_without_a_ca_file_the_systems_authorities_decide() -> None:
    with (
        serving(answering(), server_context("127.0.0.1")) as server,
        ExtenderClient([args(urlPrefix=server.url)]) as client,
    ):
        said = ask_one(client)
    assert said.failure_mode is FailureMode.TLS
    assert "self-signed" in said.detail or "unable to get local issuer" in said.detail


def demanding() -> ssl.SSLContext:
    context = server_context("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    AUTHORITY.configure_trust(context)
    return context


def test_a_client_certificate_is_shown_where_it_is_demanded(rules: FileRules) -> None:
    assert asked(demanding(), rules, certFile="client.crt", keyFile="client.key").effect is Effect.ALLOW


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_without_the_demanded_client_certificate_tls_fails(rules: FileRules, version: ssl.TLSVersion) -> None:
    context = demanding()
    context.maximum_version = version
    with socket.create_server(("127.0.0.1", 0)) as listening:
        refusing = threading.Thread(target=_refuse, args=(listening, context))
        refusing.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with ExtenderClient([args(urlPrefix=url, tlsConfig={"caCertFile": "ca.crt"})], files=rules) as client:
            said = ask_one(client)
        refusing.join()
    assert said.failure_mode is FailureMode.TLS
    assert "alert" in said.detail


def _refuse(listening: socket.socket, context: ssl.SSLContext) -> None:
    """A handshake as a server of blocking sockets does it: its alert is sent."""
    plain, _ = listening.accept()
    with context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as wrapped:
        with pytest.raises(ssl.SSLError):
            wrapped.do_handshake()
        os.read(wrapped.fileno(), 65_536)


def test_plain_http_behind_an_https_url_is_a_handshake_that_fails(rules: FileRules) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        talking = threading.Thread(target=_talk_plainly, args=(listening,))
        talking.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with ExtenderClient([args(urlPrefix=url, tlsConfig={"caCertFile": "ca.crt"})], files=rules) as client:
            said = ask_one(client)
        talking.join()
    assert said.failure_mode is FailureMode.TLS
    assert said.detail == 'TLS with "127.0.0.1" failed: wrong version number'


def _talk_plainly(listening: socket.socket) -> None:
    taken, _ = listening.accept()
    with taken:
        taken.recv(65_536)
        taken.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        taken.recv(65_536)


def test_encrypted_connections_are_kept_too(rules: FileRules) -> None:
    with serving(answering(), server_context("127.0.0.1")) as server:
        given = args(urlPrefix=server.url, tlsConfig={"caCertFile": "ca.crt"})
        with ExtenderClient([given], files=rules, concurrency=2) as client:
            client.ask([question()] * 20, deadline_seconds=30)
    assert server.connections == 2


def test_a_connection_that_closes_early_is_no_tls_failure(rules: FileRules) -> None:
    with serving(then_closing(b""), server_context("127.0.0.1")) as server:
        given = args(urlPrefix=server.url, tlsConfig={"caCertFile": "ca.crt"})
        with ExtenderClient([given], files=rules) as client:
            assert ask_one(client).failure_mode is FailureMode.CONNECTION

"""How far a policy's extender reaches: addresses in every spelling, names that lie, files that are swapped, echoes."""

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deschedui.extender.addresses import is_link_local
from deschedui.extender.client import ExtenderClient
from deschedui.extender.config import ConfigErrors
from deschedui.extender.files import Below, FileRules
from deschedui.extender.network import SystemResolver
from deschedui.extender.outcomes import Effect, FailureMode
from tests.extender.builders import args, ask_one, objections
from tests.extender.servers import answering, response, serving

METADATA = "169.254.169.254"

# --- addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        METADATA,
        "169.254.0.0",
        "fe80::1",
        "febf:ffff::1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00:0",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::1",
        "2001:0:7f00:1:0:0:5601:5601",
        "2001:db8::5efe:169.254.169.254",
        "2001:db8::200:5efe:169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "::ffff:100.100.100.200",
    ],
)
def test_an_address_that_is_link_local_in_any_form_is_refused(address: str) -> None:
    assert is_link_local(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "169.253.0.1",
        "fc00::1",
        "2001:db8::a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "fec0::1",
    ],
)
def test_any_other_address_is_not(address: str) -> None:
    assert not is_link_local(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        METADATA,
        "2852039166",
        "0xa9fea9fe",
        "0xA9FEA9FE",
        "025177524776",
        "0251.0376.0251.0376",
        "0xa9.0xfe.0xa9.0xfe",
        "169.254.43518",
        "169.16689662",
        "169.254.169.254.",
        "169.0xfe.0251.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[v1.fe80]",
        "１６９.254.169.254",
        "169。254。169。254",
        "%31%36%39.254.169.254",
    ],
)
def test_a_host_that_is_such_an_address_in_disguise_is_a_policy_error(host: str) -> None:
    [said] = objections(urlPrefix=f"http://{host}:80/latest")
    assert "urlPrefix" in said


# --- names ------------------------------------------------------------------------------------------------


def resolver(*answers: list[str], port: int) -> SystemResolver:
    """Gives the answers one after another, the last one for ever."""
    left = list(answers)

    def look_up(host: str, _port: int) -> list[tuple[int, tuple[str, int]]]:
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET6 if ":" in each else socket.AF_INET, (each, port)) for each in found]

    return SystemResolver(look_up)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Counts who connects although nobody should."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def test_one_bad_address_among_several_is_not_connected_to() -> None:
    with serving(answering()) as server:
        names = resolver([METADATA, "fe80::1", "127.0.0.1"], port=server.port)
        with ExtenderClient([args()], resolver=names) as client:
            assert ask_one(client).effect is Effect.ALLOW


def test_only_bad_addresses_are_a_failure_at_once() -> None:
    with ExtenderClient([args()], resolver=resolver([METADATA, "fe80::1"], port=80)) as client:
        said = ask_one(client)
    assert (said.failure_mode, said.effect) == (FailureMode.CONNECTION, Effect.DENY)
    assert said.latency_ms < 1_000


def test_what_was_looked_at_is_what_is_connected_to(listener: socket.socket) -> None:
    # A second look-up would find the bad address; there is none between the check and the connection.
    names = resolver(["127.0.0.1"], [METADATA], port=port_of(listener))
    with ExtenderClient([args(httpTimeout="300ms")], resolver=names) as client:
        assert ask_one(client).failure_mode is FailureMode.TIMEOUT
    listener.accept()[0].close()


def test_each_new_connection_is_looked_at_again() -> None:
    with serving(answering(response(b'{"allow":true}', "200 OK", "Connection: close"))) as server:
        names = resolver(["127.0.0.1"], [METADATA], port=server.port)
        with ExtenderClient([args()], resolver=names) as client:
            said = [ask_one(client).failure_mode for _ in range(2)]
    assert said == [None, FailureMode.CONNECTION]


def test_a_redirect_to_the_metadata_service_is_not_followed_nor_resolved() -> None:
    moved = response(b"", "302 Found", f"Location: http://{METADATA}/latest/meta-data?token=s3cr3t-token")
    with serving(answering(moved)) as server, ExtenderClient([args(urlPrefix=server.url)]) as client:
        said = ask_one(client)
    assert (said.failure_mode, said.http_status) == (FailureMode.HTTP_STATUS, 302)
    assert "redirects are not followed" in said.detail
    assert "s3cr3t-token" not in said.detail


# --- the environment --------------------------------------------------------------------------------------

PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.mark.parametrize("name", PROXIES)
def test_no_proxy_of_the_environment_is_asked(
    monkeypatch: pytest.MonkeyPatch, listener: socket.socket, name: str
) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{port_of(listener)}")
    monkeypatch.setenv("NO_PROXY", "")
    with serving(answering()) as server, ExtenderClient([args(urlPrefix=server.url)]) as client:
        assert ask_one(client).effect is Effect.ALLOW
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_no_netrc_gives_a_password_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with serving(answering()) as server, ExtenderClient([args(urlPrefix=server.url)]) as client:
        ask_one(client)
        assert b"authorization" not in server.calls[0].head.lower()


def test_the_environment_cannot_have_the_keys_of_a_connection_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    with ExtenderClient([args(urlPrefix="https://127.0.0.1:1")]) as client:
        ask_one(client)
    assert not (tmp_path / "keys").exists()


# --- files that change between check and open -------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tls" / "team").mkdir(parents=True)
    (tmp_path / "tls" / "team" / "ca.crt").write_text("ours")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "ca.crt").write_text("a secret of the machine")
    return tmp_path / "tls"


def opened(found: Below) -> str:
    return os.fdopen(found.open("", os.O_RDONLY)).read()


def test_a_file_is_opened_where_it_was_found(folder: Path) -> None:
    assert opened(Below(folder, folder / "team" / "ca.crt")) == "ours"


def test_a_link_put_in_the_files_place_leads_nowhere(folder: Path) -> None:
    found = Below(folder, folder / "team" / "ca.crt")
    found.path.unlink()
    found.path.symlink_to(folder.parent / "elsewhere" / "ca.crt")
    with pytest.raises(OSError, match="symbolic links"):
        opened(found)


def test_nor_does_one_put_in_its_folders_place(folder: Path) -> None:
    found = Below(folder, folder / "team" / "ca.crt")
    (folder / "team").rename(folder / "old")
    (folder / "team").symlink_to(folder.parent / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        opened(found)


@pytest.mark.parametrize("name", ["loop", "team", "team/ca.crt/x", "nothing", "a\x00b"])
def test_what_cannot_be_opened_is_said_by_its_name(folder: Path, name: str) -> None:
    (folder / "loop").symlink_to("loop")
    refused = objections(urlPrefix="https://ext.test", tlsConfig={"caCertFile": name}) or _said(folder, name)
    assert "caCertFile" in refused[0]
    assert "secret" not in refused[0]


def _said(folder: Path, name: str) -> list[str]:
    with pytest.raises(ConfigErrors) as errors:
        ExtenderClient(
            [args(urlPrefix="https://ext.test", tlsConfig={"caCertFile": name})],
            files=FileRules(folder=folder),
        )
    return [str(problem) for problem in errors.value.problems]


def test_a_private_key_cannot_be_sent_as_a_header(folder: Path) -> None:
    (folder / "tls.key").write_text(
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n"
    )
    given = args(httpHeaders={"X-Key": f"${{file:{folder / 'tls.key'}}}"})
    with pytest.raises(ConfigErrors, match="line break") as refused:
        ExtenderClient([given], files=FileRules(folder=folder, file_allow=(folder,)))
    assert "MIIEvQIBADANBg" not in str(refused.value)


@pytest.mark.parametrize("name", ["PATH", "DESCHEDUI_SECRET_KEY", "EXT_TOKEN"])
def test_a_variable_off_the_list_is_not_sent_although_it_is_set(name: str) -> None:
    given = args(httpHeaders={"X-Key": f"${{env:{name}}}"})
    rules = FileRules(env_allow=frozenset({"EXT"}), environment={name: "s3cr3t-of-ours", "EXT": "x"})
    with pytest.raises(ConfigErrors, match="not on the list of variables") as refused:
        ExtenderClient([given], files=rules)
    assert "s3cr3t-of-ours" not in str(refused.value)


# --- echoes -----------------------------------------------------------------------------------------------

SENT = "Zq9xT7vW2-k4m1"
RULES = FileRules(env_allow=frozenset({"EXT_TOKEN"}), environment={"EXT_TOKEN": SENT})


def echoed(answer: httpx.Response) -> str:
    """Everything that is kept of an answer to a question with a token in a header."""
    given = args(httpHeaders={"Authorization": "Bearer ${env:EXT_TOKEN}"})
    with ExtenderClient(
        [given], files=RULES, transport=httpx.MockTransport(lambda request: answer)
    ) as client:
        said = ask_one(client)
    return str(said.as_dict())


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json={"allow": False, "reason": f"token {SENT} is not known here"}),
        httpx.Response(200, json={"allow": True, "error": f"bad header Authorization: Bearer {SENT}"}),
        httpx.Response(200, json={"allow": "yes", "error": f"bad token {SENT}"}),
        httpx.Response(401, json={"headers": {"authorization": f"Bearer {SENT}"}}),
        httpx.Response(500, text="x" * 290 + SENT),
        httpx.Response(400, text=f"<h1>400</h1><pre>GET /evict\nX-Token: {SENT}</pre>"),
        httpx.Response(307, headers={"Location": f"https://ext.example/{SENT}/evict"}),
        httpx.Response(200, json={"allow": False, "reason": "x" * 4_090 + SENT}),
        httpx.Response(200, headers={"Content-Encoding": SENT}, content=b"x"),
    ],
)
def test_a_header_that_comes_back_is_not_kept(answer: httpx.Response) -> None:
    kept = echoed(answer)
    assert SENT not in kept
    assert SENT[:6] not in kept

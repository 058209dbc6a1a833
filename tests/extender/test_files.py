"""What a policy may reach on the machine: TLS files, variables, header files, hosts."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from deschedui.extender.config import ConfigErrors
from deschedui.extender.files import FileRules, Prepared, prepare
from tests.extender.builders import args

AUTHORITY = trustme.CA()
IDENTITY = AUTHORITY.issue_cert("client.test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for TLS files with what belongs there, and a secret beside it."""
    inside = tmp_path / "tls"
    inside.mkdir()
    AUTHORITY.cert_pem.write_to_path(inside / "ca.crt")
    IDENTITY.cert_chain_pems[0].write_to_path(inside / "client.crt")
    IDENTITY.private_key_pem.write_to_path(inside / "client.key")
    AUTHORITY.cert_pem.write_to_path(tmp_path / "outside.crt")
    return inside


def prepared(rules: FileRules, **overrides: Any) -> Prepared:
    [only] = prepare([args(**overrides)], rules)
    return only


def refusals(rules: FileRules, *overrides: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        prepare([args(**each) for each in overrides], rules)
    return [str(problem) for problem in refused.value.problems]


def tls(**files: str) -> dict[str, Any]:
    return {"urlPrefix": "https://ext.test", "tlsConfig": files}


def test_files_below_the_folder_are_used(folder: Path) -> None:
    given = tls(caCertFile="ca.crt", certFile=str(folder / "client.crt"), keyFile="client.key")
    context = prepared(FileRules(folder=folder), **given).tls
    assert context is not None
    assert [each["subject"] for each in context.get_ca_certs()]


def test_without_a_ca_file_the_system_is_trusted_and_the_name_checked() -> None:
    context = prepared(FileRules(), urlPrefix="https://ext.test").tls
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    "name", ["../outside.crt", "{folder}/../outside.crt", "/etc/passwd", "link.crt", "."]
)
def test_what_is_not_below_the_folder_is_refused(folder: Path, name: str) -> None:
    (folder / "link.crt").symlink_to(folder.parent / "outside.crt")
    [said] = refusals(FileRules(folder=folder), tls(caCertFile=name.format(folder=folder)))
    assert said.startswith("extenders[0].tlsConfig.caCertFile: ")
    assert "not below the folder" in said or "is a directory" in said


def test_a_link_that_stays_below_the_folder_is_followed(folder: Path) -> None:
    (folder / "..data").mkdir()
    (folder / "ca.crt").rename(folder / "..data" / "ca.crt")
    (folder / "ca.crt").symlink_to("..data/ca.crt")
    assert prepared(FileRules(folder=folder), **tls(caCertFile="ca.crt")).tls


def test_without_a_folder_no_file_is_opened(folder: Path) -> None:
    [said] = refusals(FileRules(), tls(caCertFile=str(folder / "ca.crt")))
    assert "no folder for TLS files is configured" in said


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\n"])
def test_a_file_without_a_certificate_is_refused(folder: Path, content: bytes) -> None:
    (folder / "bad.crt").write_bytes(content)
    assert "holds no CA certificate" in refusals(FileRules(folder=folder), tls(caCertFile="bad.crt"))[0]


def test_a_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "is not a file" in refusals(FileRules(folder=folder), tls(caCertFile="pipe"))[0]


def test_a_huge_file_is_not_read(folder: Path) -> None:
    (folder / "huge").write_bytes(b"x" * (1024 * 1024 + 1))
    assert "larger than 1 MiB" in refusals(FileRules(folder=folder), tls(caCertFile="huge"))[0]


def test_a_key_of_another_certificate_is_refused(folder: Path) -> None:
    AUTHORITY.issue_cert("other.test").private_key_pem.write_to_path(folder / "other.key")
    [said] = refusals(FileRules(folder=folder), tls(certFile="client.crt", keyFile="other.key"))
    assert "no certificate with its unencrypted key" in said


def test_everything_wrong_with_all_extenders_is_said_at_once(folder: Path) -> None:
    rules = FileRules(folder=folder, hosts_allow=frozenset({"ext.test"}), environment={})
    said = refusals(
        rules,
        tls(caCertFile="gone.crt", certFile="gone.crt", keyFile="gone.key"),
        {
            "urlPrefix": "http://elsewhere.test",
            "httpHeaders": {"X": "${env:HOME}", "Y": "${file:/etc/passwd}"},
        },
    )
    assert [text.split(":")[0] for text in said] == [
        "extenders[0].tlsConfig.caCertFile",
        "extenders[0].tlsConfig.certFile",
        "extenders[0].tlsConfig.keyFile",
        "extenders[1].urlPrefix",
        "extenders[1].httpHeaders.X",
        "extenders[1].httpHeaders.Y",
    ]


def test_header_values_come_from_variables_and_files_on_the_list(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    rules = FileRules(env_allow=frozenset({"WHO"}), file_allow=(tmp_path,), environment={"WHO": "deschedui"})
    headers = {"Authorization": f"Bearer ${{file:{tmp_path}/token}}", "X-Who": "${env:WHO}-${env:WHO}"}
    found = prepared(rules, httpHeaders=headers)
    assert found.headers == (("Authorization", "Bearer s3cret"), ("X-Who", "deschedui-deschedui"))
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize("value", ["", "a\nb", "é", "\x00"])
def test_a_variable_that_is_no_header_value_is_refused_and_not_repeated(value: str) -> None:
    rules = FileRules(env_allow=frozenset({"X"}), environment={"X": value})
    [said] = refusals(rules, {"httpHeaders": {"X": "${env:X}"}})
    assert value not in said or not value


@pytest.mark.parametrize("content", [b"", b"\xff", b"a\r\nb"])
def test_a_file_that_is_no_header_value_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    rules = FileRules(file_allow=(tmp_path / "token",))
    assert refusals(rules, {"httpHeaders": {"X": f"${{file:{tmp_path}/token}}"}})


def test_a_link_out_of_the_listed_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "token").symlink_to("/etc/hostname")
    rules = FileRules(file_allow=(tmp_path / "listed",))
    assert (
        "not on the list" in refusals(rules, {"httpHeaders": {"X": f"${{file:{tmp_path}/listed/token}}"}})[0]
    )


@pytest.mark.parametrize("host", ["ext.test", "EXT.test", "a.internal.test", "ext.test."])
def test_hosts_on_the_list_may_be_called(host: str) -> None:
    rules = FileRules(hosts_allow=frozenset({"ext.test", "*.Internal.test"}))
    assert prepared(rules, urlPrefix=f"http://{host}").tls is None


@pytest.mark.parametrize("host", ["ext.test.evil.test", "internal.test", "notinternal.test", "127.0.0.1"])
def test_hosts_off_the_list_may_not(host: str) -> None:
    rules = FileRules(hosts_allow=frozenset({"ext.test", "*.internal.test"}))
    assert "not on the list of hosts" in refusals(rules, {"urlPrefix": f"http://{host}"})[0]

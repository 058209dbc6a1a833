"""From arguments to something that can be called: files, variables and hosts, each from its allow-list.

This is where a policy meets the machine, so whoever can edit a policy gets no further than these rules: TLS
files from below one folder (symlinks resolved), variables and files for header values by name, hosts by name.
All objections of all extenders are raised together as `ConfigErrors`.
"""

import os
import re
import ssl
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from deschedui.extender.config import REFERENCE, ExtenderArgs
from deschedui.extender.errors import ConfigErrors, ConfigProblem

_LARGEST_FILE: Final = 1024 * 1024
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """What a policy may reach on this machine; the empty rules reach nothing, and any host.

    `folder`: TLS files lie below it. `env_allow`: names of variables for `${env:NAME}`. `file_allow`: files
    for `${file:PATH}`, or folders whose files may stand there. `hosts_allow`: hosts that may be called,
    `*.example.org` for all below a name; None for every host. `environment`: where variables are read.
    """

    folder: Path | None = None
    env_allow: frozenset[str] = frozenset()
    file_allow: tuple[Path, ...] = ()
    hosts_allow: frozenset[str] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One extender, ready to be called. Compared by identity; its headers hold secrets and are not shown."""

    args: ExtenderArgs
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    tls: ssl.SSLContext | None
    server_name: str


def prepare(extenders: Sequence[ExtenderArgs], rules: FileRules) -> tuple[Prepared, ...]:
    """Resolve everything. Raises `ConfigErrors` with every objection, paths starting at `extenders[i]`."""
    problems: list[ConfigProblem] = []
    prepared = tuple(_prepare(args, rules, problems, place) for place, args in enumerate(extenders))
    if problems:
        raise ConfigErrors(problems)
    return prepared


class _Refused(Exception):  # noqa: N818 - caught in this module, its text becomes an objection
    """One rule says no."""


@contextmanager
def _collecting(problems: list[ConfigProblem], *path: str | int) -> Iterator[None]:
    """Turns a refusal into an objection at `path`, so that one fault does not hide the next."""
    try:
        yield
    except _Refused as refused:
        problems.append(ConfigProblem(path, str(refused)))


def _prepare(args: ExtenderArgs, rules: FileRules, problems: list[ConfigProblem], place: int) -> Prepared:
    with _collecting(problems, "extenders", place, "urlPrefix"):
        _check_host(args.host, rules)
    headers = []
    for name, value in args.http_headers.items():
        with _collecting(problems, "extenders", place, "httpHeaders", name):
            headers.append((name, _resolve(value, rules)))
    tls = _tls_context(args, rules, problems, place) if args.https else None
    return Prepared(args, tuple(headers), tls, args.tls_config.server_name or args.host)


def _check_host(host: str, rules: FileRules) -> None:
    if rules.hosts_allow is None or any(_matches(host, allowed) for allowed in rules.hosts_allow):
        return
    raise _Refused(f'host "{host}" is not on the list of hosts that extenders may have')


def _matches(host: str, allowed: str) -> bool:
    allowed, host = allowed.lower().rstrip("."), host.rstrip(".")
    return host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed


# Values of headers


def _resolve(value: str, rules: FileRules) -> str:
    """The value with its references replaced. Messages name the reference, never what it holds."""
    resolved = REFERENCE.sub(lambda found: _referenced(found["kind"], found["name"], rules), value)
    if not _VALUE.fullmatch(resolved):
        raise _Refused("what the reference holds has a line break, a control or a non-ASCII character")
    return resolved


def _referenced(kind: str, name: str, rules: FileRules) -> str:
    return _variable(name, rules) if kind == "env" else _file_value(name, rules)


def _variable(name: str, rules: FileRules) -> str:
    if name not in rules.env_allow:
        raise _Refused(f"variable {name} is not on the list of variables that headers may use")
    if not (found := rules.environment.get(name, "").strip()):
        raise _Refused(f"variable {name} is not set")
    return found


def _file_value(name: str, rules: FileRules) -> str:
    wanted = _real(Path(name))
    allowed = next((each for each in map(_real, rules.file_allow) if wanted.is_relative_to(each)), None)
    if allowed is None:
        raise _Refused(f"file {name} is not on the list of files that headers may use")
    try:
        found = (
            _read(Below(allowed if wanted != allowed else allowed.parent, wanted), name)
            .decode("ascii")
            .strip()
        )
    except UnicodeDecodeError:
        raise _Refused(f"file {name} holds non-ASCII bytes, which a header cannot") from None
    if not found:
        raise _Refused(f"file {name} is empty")
    return found


# TLS


def _tls_context(
    args: ExtenderArgs, rules: FileRules, problems: list[ConfigProblem], place: int
) -> ssl.SSLContext:
    """Verifies the server's certificate and name, always: against the CA file, else the system's CAs.

    Which are the system's, whoever runs us may say with OpenSSL's own ``SSL_CERT_FILE``; a policy cannot.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    tls = args.tls_config
    if tls.ca_cert_file is None:
        context.load_default_certs()
    else:
        with _collecting(problems, "extenders", place, "tlsConfig", "caCertFile"):
            _trust(context, tls.ca_cert_file, rules)
    if tls.cert_file is not None and tls.key_file is not None:
        _identify(context, {"certFile": tls.cert_file, "keyFile": tls.key_file}, rules, problems, place)
    return context


def _trust(context: ssl.SSLContext, name: str, rules: FileRules) -> None:
    found = _read(_tls_path(name, rules), name)
    try:
        context.load_verify_locations(cadata=found.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise _Refused(f"{name} holds no CA certificate in PEM form") from None


def _identify(
    context: ssl.SSLContext,
    pair: Mapping[str, str],
    rules: FileRules,
    problems: list[ConfigProblem],
    place: int,
) -> None:
    contents: list[bytes] = []
    for field_name, name in pair.items():
        with _collecting(problems, "extenders", place, "tlsConfig", field_name):
            contents.append(_read(_tls_path(name, rules), name))
    if len(contents) == len(pair):
        with _collecting(problems, "extenders", place, "tlsConfig", "keyFile"):
            _load_pair(context, contents, " and ".join(pair.values()))


def _load_pair(context: ssl.SSLContext, contents: Sequence[bytes], names: str) -> None:
    """The library reads by name alone, and a name may change: it gets what was read, in a private folder."""
    try:
        with TemporaryDirectory(prefix="deschedui-tls-") as folder:
            certificate, key = (Path(folder, name) for name in ("certificate", "key"))
            for path, content in zip((certificate, key), contents, strict=True):
                path.touch(mode=0o600)
                path.write_bytes(content)
            context.load_cert_chain(certificate, key, password="")  # an encrypted key must not prompt
    except (ssl.SSLError, ValueError) as error:
        what = getattr(error, "reason", None) or "the key is encrypted or not a key"
        raise _Refused(
            f"{names} are no certificate with its unencrypted key in PEM form ({str(what).lower()})"
        ) from None


def _tls_path(name: str, rules: FileRules) -> "Below":
    if rules.folder is None:
        raise _Refused(f"{name} is refused: no folder for TLS files is configured")
    folder = _real(rules.folder)
    wanted = _real(folder / name)
    if not wanted.is_relative_to(folder):
        raise _Refused(f"{name} is refused: it is not below the folder for TLS files ({rules.folder})")
    return Below(folder, wanted)


def _real(path: Path) -> Path:
    """Symlinks resolved, so that a link cannot lead out of an allowed folder."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise _Refused(f"{path} cannot be resolved") from None


@dataclass(frozen=True, slots=True)
class Below:
    """A file and the folder that it was found to lie below, both without symlinks when they were looked at."""

    folder: Path
    path: Path

    def open(self, _path: str, flags: int) -> int:
        """Go down from the folder step by step and follow no link that was put there since; for `open(opener=…)`.

        Nor wait for a pipe's other end. Raises OSError.
        """
        *folders, last = self.path.relative_to(self.folder).parts or (".",)
        at = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for step in folders:
                at, above = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at), at
                os.close(above)
            return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)


def _read(found: Below, name: str) -> bytes:
    """A regular file, bounded."""
    try:
        with open(found.path, "rb", opener=found.open) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _Refused(f"{name} is not a file")
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise _Refused(f"{name} cannot be read: {(error.strerror or 'error').lower()}") from None
    if len(content) > _LARGEST_FILE:
        raise _Refused(f"{name} is larger than 1 MiB")
    return content

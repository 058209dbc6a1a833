"""Advisories of a folder or a zip in OSV form, served as the OSV service serves them, so that pip-audit works offline.

OSV publishes everything that it knows of PyPI's packages as one file (``PyPI/all.zip`` of its export); whoever has no
network carries that over. Form: https://ossf.github.io/osv-schema/.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

Json = Mapping[str, Any]
ECOSYSTEM = "PyPI"


class NoAdvisories(Exception):  # noqa: N818 - it is told to a person
    """There is nothing to audit with; the text says where it was looked for."""


@dataclass
class Advisories:
    """What is known, by package."""

    by_package: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0
    newest: str = ""

    @classmethod
    def read(cls, place: Path) -> Advisories:
        """All advisories about PyPI's packages below a folder, or in a zip.

        Raises:
            NoAdvisories: there is none.
        """
        found = cls()
        for text in _documents(place):
            found.add(json.loads(text))
        if not found.count:
            raise NoAdvisories(f"{place} holds no advisory in OSV form about a package of {ECOSYSTEM}")
        return found

    def add(self, advisory: Json) -> None:
        """One more."""
        names = {name for affected in advisory.get("affected", ()) if (name := _package(affected))}
        for name in names:
            self.by_package[name].append(advisory)
        self.count += bool(names)
        self.newest = max(self.newest, str(advisory.get("modified", "")))

    def about(self, name: str, version: str) -> list[Json]:
        """Those about this version of this package, withdrawn ones too: pip-audit leaves them out."""
        wanted = canonicalize_name(name)
        return [
            _with_canonical_names(advisory)
            for advisory in self.by_package.get(wanted, ())
            if any(
                _package(each) == wanted and affects(each, Version(version)) for each in advisory["affected"]
            )
        ]


def _documents(place: Path) -> Iterator[bytes]:
    if place.is_file() and zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            yield from (archive.read(name) for name in archive.namelist() if name.endswith(".json"))
    else:
        yield from (path.read_bytes() for path in sorted(place.rglob("*.json")))


def _package(affected: Json) -> str:
    package = affected.get("package", {})
    return canonicalize_name(package["name"]) if package.get("ecosystem") == ECOSYSTEM else ""


def _with_canonical_names(advisory: Json) -> Json:
    """pip-audit compares names as they are spelled."""
    affected = [
        {**each, "package": {**each["package"], "name": _package(each) or each["package"]["name"]}}
        for each in advisory["affected"]
    ]
    return {**advisory, "affected": affected}


def affects(affected: Json, version: Version) -> bool:
    """Whether a version is listed, or lies in one of the ranges."""
    if any(_version(each) == version for each in affected.get("versions", ())):
        return True
    ranges = (each["events"] for each in affected.get("ranges", ()) if each.get("type") == "ECOSYSTEM")
    return any(_in_range(events, version) for events in ranges)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _in_range(events: Sequence[Json], version: Version) -> bool:
    """OSV's own evaluation: the last event at or below the version decides."""
    inside = False
    for kind, text in sorted(
        ((kind, text) for event in events for kind, text in event.items()), key=lambda each: _order(*each)
    ):
        limit = _version(text) or Version("0")
        if kind == "introduced" and (text == "0" or version >= limit):
            inside = True
        elif (kind == "fixed" and version >= limit) or (kind == "last_affected" and version > limit):
            inside = False
    return inside


def _order(kind: str, text: str) -> tuple[Version, bool]:
    return _version(text) or Version("0"), kind != "introduced"


@contextmanager
def served(advisories: Advisories) -> Iterator[str]:
    """The address at which ``pip-audit --osv-url`` asks about them, on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = advisories.about(asked["package"]["name"], asked["version"])
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
    finally:
        server.shutdown()
        server.server_close()

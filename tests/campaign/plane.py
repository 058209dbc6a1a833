"""The real control plane, with an API server that can be killed, stopped and started again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from deschedui.demo.controlplane import ControlPlane
from tests.campaign.links import free_port


class HarmedPlane(ControlPlane):
    """A control plane whose processes are looked after; its ports stay ours while a process is down."""

    def __init__(
        self, binaries: Path, folder: Path, *, manifests: Sequence[Path], users: Sequence[str]
    ) -> None:
        super().__init__(binaries, folder, manifests=manifests, users=users)
        self._ports = {name: free_port() for name in self._ports}
        self.ended: list[str] = []

    @property
    def api_port(self) -> int:
        """Where the API server listens."""
        return self._ports["api"]

    @property
    def apiserver(self) -> subprocess.Popen[bytes]:
        """Its process."""
        return self._entry("kube-apiserver")[1]

    def start_apiserver_again(self) -> None:
        """After it was killed; its audit log goes on."""
        self._forget("kube-apiserver")
        self._run_again("kube-apiserver", self._api_args())

    def tend(self) -> None:
        """Start again what ended by itself: the controllers do where they lose their API server for too long."""
        commands = {
            "kube-controller-manager": self._kcm_args,
            "kube-scheduler": self._scheduler_args,
            "kwok": self._kwok_args,
        }
        for name, arguments in commands.items():
            if self._entry(name)[1].poll() is not None:
                self.ended.append(f"{name} ended by itself")
                self._forget(name)
                self._run_again(name, arguments())

    def kubeconfig_through(self, account: str, port: int, name: str) -> Path:
        """A kubeconfig for an account that reaches the API server through a link."""
        text = self.kubeconfig(account).read_text(encoding="utf-8")
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(text.replace(self.server, f"https://127.0.0.1:{port}"), encoding="utf-8")
        return path

    def evictions(self) -> list[dict[str, Any]]:
        """The audit log's entries about evictions, in the order in which they were answered."""
        logs = sorted(self.folder.glob("audit*.log"), key=lambda path: (path == self.audit_log, path.name))
        lines = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines() if line]
        entries = [json.loads(line) for line in lines]
        return [entry for entry in entries if entry["objectRef"].get("subresource") == "eviction"]

    def _entry(self, name: str) -> tuple[str, subprocess.Popen[bytes], IO[bytes]]:
        return next(entry for entry in self._processes if entry[0] == name)

    def _forget(self, name: str) -> None:
        entry = self._entry(name)
        entry[2].close()
        self._processes.remove(entry)

    def _run_again(self, name: str, arguments: Sequence[str]) -> None:
        """In its old place, so that the end comes in the right order; and with its old log kept."""
        log = self.folder / f"{name}.log"
        log.replace(log.with_suffix(f".{len(list(self.folder.glob(f'{name}.*.log')))}.log"))
        self._run(name, *arguments)
        entry = self._processes.pop()
        self._processes.insert(1 if name == "kube-apiserver" else 2, entry)

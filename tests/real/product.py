"""The product as it is deployed: web, worker and beat as processes, with the commands and accounts of ``deploy/``."""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import httpx
import yaml

from tests.real.controlplane import ROOT
from tests.real.ports import free_port

logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each call would bury what matters

PASSWORD = "correct horse battery"
CLUSTER = "real"
START_SECONDS = 60.0


def deployed_command(component: str, **swapped: str) -> list[str]:
    """What ``deploy/base/<component>.yaml`` runs, some words swapped (by their own text)."""
    text = (ROOT / "deploy" / "base" / f"{component}.yaml").read_text(encoding="utf-8")
    deployment = next(d for d in yaml.safe_load_all(text) if d["kind"] == "Deployment")
    program, *words = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
    return [str(Path(sys.executable).parent / program), *(swapped.get(word, word) for word in words)]


@dataclass
class Process:
    """One process, its log, and its end by its own pid."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    file: IO[bytes] = field(repr=False)

    def tail(self) -> str:
        """The end of its log, without the ticks."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([line for line in lines if ".tick" not in line][-20:])

    def end(self) -> None:
        """Ask it to end, then make it."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(timeout=10)
        self.file.close()


class Product:
    """deschedui at work on a cluster: a context manager; ``url`` is where people open it.

    Args:
        folder: everything it writes.
        environment: ``DESCHEDUI_…`` variables beside those that it sets itself: database, broker, policy.
        kubeconfigs: of the ``web`` and of the ``worker`` process; each finds its own by ``KUBECONFIG``.
        settings: of the cluster, as on the settings page.
    """

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str],
        kubeconfigs: Mapping[str, Path],
        settings: Mapping[str, Any],
    ) -> None:
        self.folder, self.kubeconfigs, self.settings = folder, kubeconfigs, settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._processes: list[Process] = []
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DESCHEDUI_SECRET_KEY": "for-tests-only-and-long-enough-not-to-be-warned-about",
            "DESCHEDUI_PUBLIC_URL": self.url,
            "DESCHEDUI_INSTALLATION_ID": secrets.token_hex(16),
            "DESCHEDUI_CLUSTER_NAME": CLUSTER,
            "DESCHEDUI_TICK_SECONDS": "0.5",
            **environment,
        }

    # --- starting and ending

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._prepare()
            self._start_all()
        except BaseException:
            self._end_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_all()

    def _prepare(self) -> None:
        """What the migration job does, and then an admin."""
        self._manage("migrate", "--verbosity", "0")
        self._manage("bootstrap")
        asked = {"cluster": CLUSTER, "password": PASSWORD, "settings": dict(self.settings)}
        made = self._python("-m", "tests.real.people", text=json.dumps(asked))
        tokens = json.loads(made.splitlines()[-1])  # the lines before are the record's
        self.token, self.caller_token = tokens["token"], tokens["caller_token"]

    def _start_all(self) -> None:
        port = str(self.port)
        web = deployed_command("web", **{"0.0.0.0": "127.0.0.1", "8000": port})
        schedule = str(self.folder / "beat-schedule")
        self.start("web", web, kubeconfig="web")
        self.start("worker", deployed_command("worker"), kubeconfig="worker")
        self.start("beat", deployed_command("beat", **{"/tmp/beat-schedule": schedule}), kubeconfig="")
        self.wait(self._serves, "web")
        self.wait(
            lambda: self.api("GET", f"clusters/{CLUSTER}/")["contacted_at"], "the first look at the cluster"
        )

    def start(self, name: str, argv: Sequence[str], *, kubeconfig: str) -> Process:
        """Start one more process, with the kubeconfig of an account ('': without any)."""
        log = self.folder / f"{name}.log"
        file = log.open("ab")
        config = str(self.kubeconfigs[kubeconfig]) if kubeconfig else "/dev/null"
        popen = subprocess.Popen(
            argv,
            cwd=ROOT,
            env={**self.environment, "KUBECONFIG": config},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        process = Process(name, popen, log, file)
        self._processes.append(process)
        return process

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """End every process, and start them again after the block: for what is done to the database meanwhile."""
        self._end_all()
        yield
        self._start_all()

    def _end_all(self) -> None:
        while self._processes:
            self._processes.pop().end()

    def _manage(self, *arguments: str) -> str:
        return self._python("manage.py", *arguments)

    def _python(self, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr[-3000:]}"
        return done.stdout

    def _serves(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    # --- working with it

    def wait(self, ready: Callable[[], object], what: str, seconds: float = START_SECONDS) -> None:
        """Wait until something holds. Fails with the logs where it does not, or where a process ended."""
        deadline = time.monotonic() + seconds
        while not ready():
            ended = [process.name for process in self._processes if process.popen.poll() is not None]
            assert not ended, f"{what}: {', '.join(ended)} ended\n{self.logs()}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s\n{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"--- {process.name}\n{process.tail()}" for process in self._processes)

    def errors(self) -> list[str]:
        """What web, worker and beat have logged as an error."""
        texts = [process.log.read_text(encoding="utf-8", errors="replace") for process in self._processes]
        lines = [line for text in texts for line in text.splitlines()]
        return [line for line in lines if '"level": "error"' in line or "Traceback" in line]

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One call of the REST API as ``root``, an admin."""
        answer = httpx.request(
            method,
            f"{self.url}/api/v1/{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=20,
        )
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}\n{self.logs()}"
        return dict(answer.json())

    def ask(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """Ask at the extender door, as the caller ``drain``."""
        answer = httpx.post(
            f"{self.url}/doors/evict",
            json={"pod": dict(pod)},
            headers={"Authorization": f"Bearer {self.caller_token}"},
            timeout=20,
        )
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def run_cycle(self, *, dry: bool = False) -> dict[str, Any]:
        """Start a cycle by hand and wait until a worker has completed it."""
        cycle = self.api("POST", "cycles/", {"cluster": CLUSTER, "dry_run": dry})
        self.wait(lambda: self._cycle(cycle["id"])["state"] != "running", f"cycle {cycle['id']}")
        done = self._cycle(cycle["id"])
        assert done["state"] == "completed", f"{done}\n{self.logs()}"
        return done

    def _cycle(self, pk: int) -> dict[str, Any]:
        return self.api("GET", f"cycles/{pk}/")

    def decisions(self, namespace: str) -> list[dict[str, Any]]:
        """The decisions about a namespace, newest first."""
        return list(self.api("GET", f"decisions/?namespace={namespace}")["results"])

    def decision(self, pk: int) -> dict[str, Any]:
        """One decision, with its timeline."""
        return self.api("GET", f"decisions/{pk}/")

    def wait_for_eviction(self, pk: int, *statuses: str, seconds: float = START_SECONDS) -> dict[str, Any]:
        """Wait until a decision's eviction has one of these statuses, and return the decision."""
        try:
            self.wait(lambda: self.decision(pk)["eviction"] in statuses, " or ".join(statuses), seconds)
        except AssertionError as late:
            raise AssertionError(f"{self.story(pk)}\n{late}") from None
        return self.decision(pk)

    def story(self, pk: int) -> str:
        """A decision's state and timeline, a line each."""
        row = self.decision(pk)
        events = [f"  {each['at']} {each['kind']}: {each['reason']}" for each in row["timeline"]]
        head = f"decision {pk}: {row['verdict']}, {row['eviction']}, {row['cause']} {row['message']} {row['held']}"
        return "\n".join([head, *events])

"""``make demo``: a cluster in which something is always wrong, and the whole product working on it.

Everything goes the way of production: the same client, tasks, pages and doors. Only the API server is ours
(``--cluster demo``), or real and started for this (``--cluster kube``, where Go is present).
"""

import argparse
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deschedui import supervisor
from deschedui.config import ROOT
from deschedui.demo import kube
from deschedui.demo.controlplane import ControlPlaneError
from deschedui.demo.people import PASSWORD, USERS
from deschedui.supervisor import Program, Supervisor


@dataclass(frozen=True)
class Demo:
    """Where this run keeps its files, and where it listens."""

    folder: Path
    port: int
    extender_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def environment(self) -> dict[str, str]:
        """What configures deschedui, as an installation of yours would."""
        return {
            "DESCHEDUI_DEMO": "1",
            "DESCHEDUI_SECRET_KEY": secrets.token_urlsafe(48),
            "DESCHEDUI_PUBLIC_URL": self.url,
            "DESCHEDUI_DATABASE_URL": f"sqlite:///{self.folder / 'deschedui.sqlite3'}",
            "DESCHEDUI_BROKER_URL": f"filesystem://{self.folder / 'broker'}",
            "DESCHEDUI_CLUSTER_NAME": "demo",
            "DESCHEDUI_CLUSTER_KUBECONFIG": str(self.kubeconfig),
            "DESCHEDUI_POLICY_FILE": str(self.folder / "policy.yaml"),
            "DESCHEDUI_STATIC_ROOT": str(self.folder / "static"),
            "DESCHEDUI_TICK_SECONDS": "1",
        }


def main() -> None:
    """Start it all, print where it is, end it all on Ctrl-C."""
    options = _arguments()
    demo = _prepare(options.port, options.cluster)
    os.environ.update(demo.environment())
    with Supervisor(demo.folder / "logs") as processes:
        try:
            with _cluster(options.cluster, demo, processes):
                _start(demo, processes)
                _say(demo)
                processes.watch()
        except supervisor.Interrupted:
            print("\nending the demo")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--cluster", choices=("demo", "kube"), default="demo")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
    return parser.parse_args()


def _prepare(port: int, kind: str) -> Demo:
    folder = _own_folder()
    demo = Demo(folder, port if _is_free(port) else _free_port(), _free_port())
    policy = (Path(__file__).parent / "policy.yaml").read_text(encoding="utf-8")
    policy = kube.impatient(policy) if kind == "kube" else policy
    extender = f"127.0.0.1:{demo.extender_port}"
    (folder / "policy.yaml").write_text(policy.replace("${DEMO_EXTENDER}", extender), encoding="utf-8")
    return demo


def _own_folder() -> Path:
    """An empty folder that is ours as long as we live: a second demo beside a first one gets its own."""
    (ROOT / "var").mkdir(exist_ok=True)
    for number in range(1, 100):
        folder = ROOT / "var" / (f"demo-{number}" if number > 1 else "demo")
        lock = os.open(folder.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder
    raise SystemExit("a hundred demos run here already")


@contextmanager
def _cluster(kind: str, demo: Demo, processes: Supervisor) -> Iterator[None]:
    if kind == "kube":
        try:
            with kube.sample_control_plane(demo.folder / "control-plane", demo.kubeconfig):
                yield
        except ControlPlaneError as error:
            raise SystemExit(f"the control plane cannot run: {error}") from error
        return
    ready = demo.folder / "apiserver.json"
    argv = [sys.executable, "-m", "deschedui.demo.apiserver"]
    argv += ["--kubeconfig", str(demo.kubeconfig), "--ready-file", str(ready)]
    processes.start(Program("apiserver", argv))
    processes.wait_until(ready.exists, "The demo's API server")
    yield


def _start(demo: Demo, processes: Supervisor) -> None:
    argv = [sys.executable, "-m", "deschedui.demo.extender", "--port", str(demo.extender_port)]
    processes.start(Program("extender", argv))
    log = demo.folder / "logs" / "setup.log"
    _manage(log, "migrate", "--verbosity", "0")
    _manage(log, "collectstatic", "--noinput", "--verbosity", "0")
    _manage(log, "bootstrap", "--verbosity", "0")
    _manage(log, "seed_demo", "--password", PASSWORD, "--token-file", str(demo.folder / "caller-token"))
    processes.start(supervisor.web(demo.port))
    processes.start(supervisor.worker(8))
    processes.wait_until(lambda: _answers(f"{demo.url}/healthz"), "The web process")


def _manage(log: Path, *arguments: str) -> None:
    """The command's own words and the record's lines go to ``log``, what goes wrong to the terminal."""
    with log.open("ab") as output:
        argv = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(argv, stdout=output, check=False)
    if done.returncode:
        raise SystemExit(f"manage.py {arguments[0]} failed")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _say(demo: Demo) -> None:
    token = (demo.folder / "caller-token").read_text(encoding="utf-8").strip()
    rows = "\n".join(f"    {name:<6} {role}" for name, role in USERS)
    print(
        f"""
deschedui is on  {demo.url}/
sign in as one of these, password {PASSWORD}
{rows}
or ask at the extender door (see the README for the whole loop):
    export TOKEN={token}
The first cycle runs now; the inbox has something to decide within a minute.
kubectl: export KUBECONFIG={demo.kubeconfig}    logs: {demo.folder / "logs"}
Ctrl-C ends everything.""",
        flush=True,
    )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    main()

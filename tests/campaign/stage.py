"""The whole product as separate processes, with everything that it needs, on this machine's loopback."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
import yaml

from tests.campaign.caller import NAMESPACE
from tests.campaign.collect import CALLER_USER
from tests.campaign.faults import Target
from tests.campaign.links import LOOPBACK, Balancer, Links, Loop, free_port
from tests.campaign.people import CLUSTER
from tests.campaign.plane import HarmedPlane
from tests.campaign.processes import Keeper, Program
from tests.real.controlplane import RBAC, ROOT, find_binaries
from tests.real.product import PASSWORD, deployed_command
from tests.real.services import Missing, postgresql_programs, redis_program

PEOPLE: Final = {"ada": "approver", "ben": "approver", "root": "admin"}
FAKETIME: Final = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
NODES: Final = 8
CALLER_SECONDS: Final = 5.0
# A process is given a little longer than the door takes to say no by itself.
BALANCER_SECONDS: Final = CALLER_SECONDS + 1.0
START_SECONDS: Final = 90.0

# Short enough for a campaign to see each of them end.
SETTINGS: Final[Mapping[str, Any]] = {
    "undo_seconds": 1,
    "pending_seconds": 120,
    "unanswered_backoff_seconds": (5, 10),
    "approval_seconds": 120,
    "approval_at_most_seconds": 600,
    "delegated_seconds": 120,
    "denial_cooldown_seconds": 20,
    "replacement_seconds": 60,
    "still_there_seconds": 60,
}


@dataclass(frozen=True)
class Workload:
    """Deployments of one sort: how many, of how many pods, with which labels; with a budget or without."""

    name: str
    count: int
    replicas: int
    labels: Mapping[str, str]
    budget: bool


WORKLOADS: Final = (
    Workload("ours", 10, 3, {"policy": "yes", "extender": "allow"}, budget=False),
    Workload("guarded", 5, 3, {"policy": "yes", "extender": "allow"}, budget=True),
    Workload("refused", 1, 2, {"policy": "yes", "extender": "deny"}, budget=False),
    Workload("shared", 3, 3, {"policy": "yes", "extender": "allow", "caller": "yes"}, budget=True),
    Workload("theirs", 4, 3, {"caller": "yes"}, budget=False),
)


def policy(extender: int) -> dict[str, Any]:
    """Every pod of a few seconds is too old; an extender is asked first."""
    ask = {
        "urlPrefix": f"http://{LOOPBACK}:{extender}",
        "decisionVerb": "evict",
        "ignorable": False,
        "httpTimeout": "2s",
    }
    old = {"maxPodLifeTimeSeconds": 4, "labelSelector": {"matchLabels": {"policy": "yes"}}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {
                "name": "age",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {}},
                    {"name": "PodLifeTime", "args": old},
                    {"name": "ExternalDecision", "args": {"extender": ask}},
                ],
                "plugins": {
                    "deschedule": {"enabled": ["PodLifeTime"]},
                    "preevictionfilter": {"enabled": ["ExternalDecision"]},
                },
            }
        ],
    }


class Stage:
    """Everything that runs. ``keeper`` and ``plane`` own the processes, ``links`` their connections."""

    def __init__(self, folder: Path, loop: Loop, binaries: Path) -> None:
        self.folder, self.loop = folder, loop
        self.keeper = Keeper(folder)
        self.links = Links(loop)
        self.plane = HarmedPlane(binaries, folder / "plane", manifests=RBAC, users=(CALLER_USER,))
        self.ports = {name: free_port() for name in ("postgresql", "redis", "extender", "web-1", "web-2")}
        to_web = {
            str(name): self.links.add("balancer", name, self.ports[name]) for name in ("web-1", "web-2")
        }
        self.balancer = Balancer(to_web, per_try=BALANCER_SECONDS, note=self._note)
        self.clock_file = folder / "clock"
        self.tokens: Mapping[str, str] = {}
        self.caller_token = ""

    @property
    def url(self) -> str:
        """Where people and callers find the product."""
        return f"http://{LOOPBACK}:{self.balancer.port}"

    @property
    def database_url(self) -> str:
        """The database, past all links: for what is compared."""
        return self._database(self.ports["postgresql"])

    def _database(self, port: int) -> str:
        return f"postgresql://test@{LOOPBACK}:{port}/postgres?connect_timeout=5"

    def _note(self, line: str) -> None:
        with (self.folder / "balancer.log").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    # --- starting and ending

    def start(self) -> None:
        """Start everything, and wait until it works."""
        self.folder.joinpath("policy.yaml").touch()
        self._start_postgresql()
        with ThreadPoolExecutor(1) as beside:
            plane = beside.submit(self._start_plane)
            self._start_redis()
            self.wait(self._database_answers, "PostgreSQL")
            self._prepare()
            plane.result()
        extender = self.links.add("workers", Target.EXTENDER, self.ports["extender"])
        self.folder.joinpath("policy.yaml").write_text(yaml.safe_dump(policy(extender)), encoding="utf-8")
        self._start_extender()
        for name in (Target.WEB_1, Target.WEB_2):
            self._start_web(name)
        for name in (Target.WORKER_1, Target.WORKER_2):
            self._start_worker(name)
        self._start_beat()
        self.loop.run(self.balancer.open())
        for name in (Target.WEB_1, Target.WEB_2):
            self.wait(partial(self.answers, name), name)

    def end(self) -> None:
        """End everything."""
        self.keeper.end_all()
        self.plane.stop()
        self.loop.run(self.balancer.close())
        self.links.close()

    def tend(self) -> None:
        """Start again what ended by itself."""
        self.keeper.tend()
        self.plane.tend()

    def wait(self, ready: Callable[[], object], what: str, seconds: float = START_SECONDS) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.keeper.tend()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come up within {seconds:g} s; see {self.folder}")
            time.sleep(0.1)

    def answers(self, web: str, path: str = "/livez") -> bool:
        """Whether a web process answers, past all links."""
        try:
            return httpx.get(f"http://{LOOPBACK}:{self.ports[web]}{path}", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    # --- what the product needs

    def _start_postgresql(self) -> None:
        programs, data = postgresql_programs(), self.folder / "postgresql"
        data.mkdir()
        account = "postgres" if os.getuid() == 0 else None
        if account:
            shutil.chown(data, account)
        made = subprocess.run(
            [
                str(programs / "initdb"),
                "--auth=trust",
                "--username=test",
                "--no-sync",
                "--encoding=UTF8",
                str(data),
            ],
            capture_output=True,
            text=True,
            check=False,
            user=account,
            cwd="/",
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr[-500:]}")
        words = ["-p", str(self.ports["postgresql"]), "-h", LOOPBACK, "-k", "", "-c", "fsync=off"]
        # The time of each commit is kept, so that what others could see can be told from what a process meant.
        words += ["-c", "track_commit_timestamp=on", "-c", "max_connections=200"]
        argv = [str(programs / "postgres"), "-D", str(data), *words]
        self.keeper.add(
            Program(Target.POSTGRESQL, argv, _bare(), Path("/"), account=account, stop_signal=signal.SIGINT)
        )

    def _database_answers(self) -> bool:
        try:
            with psycopg.connect(self.database_url):
                return True
        except psycopg.Error:
            return False

    def _start_redis(self) -> None:
        words = ["--port", str(self.ports["redis"]), "--bind", LOOPBACK, "--save", "", "--appendonly", "no"]
        self.keeper.add(Program(Target.REDIS, [redis_program(), *words], _bare(), self.folder))

    def _start_plane(self) -> None:
        self.plane.start()
        for number in range(NODES):
            self._make_node(f"node-{number}")
        self.plane.create({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for manifest in caller_rights():
            self.plane.create(manifest)
        for workload in WORKLOADS:
            for number in range(workload.count):
                self._make_workload(workload, f"{workload.name}-{number}")

    def _make_node(self, name: str) -> None:
        labels = {"kubernetes.io/hostname": name, "type": "kwok"}
        self.plane.create({"kind": "Node", "metadata": {"name": name, "labels": labels}}, "/api/v1/nodes")
        room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        status = {"status": {"allocatable": room, "capacity": room}}
        self.plane.request("PATCH", f"/api/v1/nodes/{name}/status", status)

    def _make_workload(self, workload: Workload, name: str) -> None:
        apps, policies = (f"/apis/{group}/v1/namespaces/{NAMESPACE}" for group in ("apps", "policy"))
        self.plane.create(deployment(workload, name), f"{apps}/deployments")
        if workload.budget:
            self.plane.create(
                {
                    "metadata": {"name": name},
                    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
                },
                f"{policies}/poddisruptionbudgets",
            )

    # --- the product

    def _prepare(self) -> None:
        """What the migration job does, and then an admin."""
        environment = self._environment("setup", self.ports["postgresql"], self.ports["redis"])
        for words in (["manage.py", "migrate", "--verbosity", "0"], ["manage.py", "bootstrap"]):
            _run([sys.executable, *words], environment)
        asked = {
            "people": PEOPLE,
            "admin": "root",
            "password": PASSWORD,
            "cluster": CLUSTER,
            "interval_seconds": 10,
            "settings": dict(SETTINGS),
            "caller": {"interval_seconds": 1, "timeout_seconds": CALLER_SECONDS},
        }
        told = _run([sys.executable, "-m", "tests.campaign.prepare"], environment, json.dumps(asked))
        made = json.loads(told.splitlines()[-1])  # before it come the lines of the record
        self.tokens, self.caller_token = made["tokens"], made["caller"]

    def _environment(self, name: str, database: int, broker: int) -> dict[str, str]:
        if not hasattr(self, "_secrets"):
            self._secrets = {
                "DESCHEDUI_SECRET_KEY": secrets.token_urlsafe(48),
                "DESCHEDUI_INSTALLATION_ID": secrets.token_urlsafe(24),
            }
        return {
            **_bare(),
            **self._secrets,
            "DESCHEDUI_PUBLIC_URL": self.url,
            "DESCHEDUI_CLUSTER_NAME": CLUSTER,
            "DESCHEDUI_POLICY_FILE": str(self.folder / "policy.yaml"),
            "DESCHEDUI_TICK_SECONDS": "1",
            "DESCHEDUI_API_UNDO_SECONDS": "0.5",
            "DESCHEDUI_WEB_PROCESSES": "2",
            "DESCHEDUI_DATABASE_URL": self._database(database).partition("?")[0],
            "DESCHEDUI_BROKER_URL": f"redis://{LOOPBACK}:{broker}/0",
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "plane" / f"{name}.kubeconfig"),
        }

    def _linked(self, name: str, account: str) -> dict[str, str]:
        """The environment of a process, with links of its own to everything."""
        database = self.links.add(name, Target.POSTGRESQL, self.ports["postgresql"])
        broker = self.links.add(name, Target.REDIS, self.ports["redis"])
        if account:
            api = self.links.add(name, Target.APISERVER, self.plane.api_port)
            self.plane.kubeconfig_through(account, api, name)
        return self._environment(name, database, broker)

    def _start_web(self, name: str) -> None:
        argv = deployed_command("web", **{"0.0.0.0": LOOPBACK, "8000": str(self.ports[name])})
        self.keeper.add(Program(name, argv, self._linked(name, "web"), ROOT))

    def _start_worker(self, name: str) -> None:
        environment = self._linked(name, "worker")
        if name == Target.WORKER_2:
            environment |= self._set_off()
        argv = [*deployed_command("worker"), "--hostname", f"{name}@campaign"]
        self.keeper.add(Program(name, argv, environment, ROOT))

    def _set_off(self) -> dict[str, str]:
        """A clock that can be set while the process runs; the wall's only, as on a machine whose time is wrong."""
        self.set_clock(0)
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock_file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": str(Path(__file__).parent / "clock"),
        }

    def set_clock(self, seconds: int) -> None:
        """Set the clock of ``worker-2`` off."""
        self.clock_file.write_text(f"{seconds:+d}s\n", encoding="utf-8")

    def _start_beat(self) -> None:
        argv = deployed_command("beat", **{"/tmp/beat-schedule": str(self.folder / "beat-schedule")})
        self.keeper.add(Program(Target.BEAT, argv, self._linked(Target.BEAT, ""), ROOT))

    def _start_extender(self) -> None:
        argv = [sys.executable, "-m", "tests.real.extender_process", str(self.ports["extender"])]
        self.keeper.add(Program(Target.EXTENDER, argv, _bare(), ROOT))


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Everything, for as long as the block runs. Raises Missing: a program is not installed."""
    if FAKETIME is None:
        raise Missing("libfaketime is not installed (Debian: faketime)")
    with ExitStack() as ends:
        loop = ends.enter_context(Loop())
        made = Stage(folder, loop, find_binaries())
        ends.callback(made.end)
        made.start()
        yield made


def _bare() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def _run(argv: list[str], environment: Mapping[str, str], text: str = "") -> str:
    done = subprocess.run(
        argv, cwd=ROOT, env=dict(environment), input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[1:])}: {done.stderr[-3000:]}")
    return done.stdout


def deployment(workload: Workload, name: str) -> dict[str, Any]:
    """A Deployment whose pods carry its labels."""
    labels = {"app": name, **workload.labels}
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def caller_rights() -> Iterator[dict[str, Any]]:
    """What a descheduler may: evict pods."""
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    yield {
        "kind": "ClusterRole",
        "metadata": {"name": CALLER_USER},
        "rules": [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}],
    }
    yield {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": CALLER_USER},
        "roleRef": {**group, "kind": "ClusterRole", "name": CALLER_USER},
        "subjects": [{**group, "kind": "User", "name": CALLER_USER}],
    }

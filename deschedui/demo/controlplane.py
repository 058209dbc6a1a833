"""A real control plane on this machine, without containers: etcd, API server, controllers, scheduler, kwok.

For tests and for ``make demo CLUSTER=kube``. Loopback only, free ports, everything below one folder, a random token
for each account. kwok plays the kubelets: pods become Running and Ready, evicted pods end. The programs are built
by ``tests/controlplane/build.sh``.

``python -m deschedui.demo.controlplane --binaries BIN --folder DIR`` runs one until it is told to stop.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import yaml

PROGRAMS: Final = ("server", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
WEB: Final = "system:serviceaccount:deschedui:deschedui-web"
WORKER: Final = "system:serviceaccount:deschedui:deschedui-worker"
START_SECONDS: Final = 90.0

_CONTROLLERS: Final = (
    "disruption,replicaset,deployment,daemonset,statefulset,job,serviceaccount,namespace,"
    "garbagecollector,nodelifecycle"
)
READY_AFTER: Final = "kwok.deschedui.test/ready-after"
"""Annotation of a pod: how long it takes until it is Ready, as a Go duration (``4s``). Without it: no time."""
_EVICTIONS: Final = {
    "level": "RequestResponse",
    "resources": [{"group": "", "resources": ["pods/eviction"]}],
}
# Where manifests of these kinds are created.
_CREATED_AT: Final = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}


# Ends what was started when its starter was killed: then its standard input ends without a last word.
_GUARD: Final = """
import os, signal, sys, time
pids = []
for line in sys.stdin:
    if line.strip() == "done":
        sys.exit()
    pids.append(int(line))
for pid in reversed(pids):
    try:
        os.kill(pid, signal.SIGTERM)
        for _ in range(30):
            time.sleep(0.1)
            os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class ControlPlaneError(RuntimeError):
    """The control plane cannot run here, or stopped: says which program, and the end of its log."""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody whom the API server knows by a token."""

    user: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


def _accounts(extra: Sequence[str]) -> dict[str, Account]:
    sa_groups = ("system:serviceaccounts", "system:serviceaccounts:deschedui")
    return {
        "admin": Account("admin", ("system:masters",)),
        "kcm": Account("system:kube-controller-manager"),
        "scheduler": Account("system:kube-scheduler"),
        "web": Account(WEB, sa_groups),
        "worker": Account(WORKER, sa_groups),
        **{name: Account(name) for name in extra},
    }


class ControlPlane:
    """A control plane: ``start()``, then ``kubeconfig(account)``, then ``stop()``; also a context manager.

    Args:
        binaries: folder with the programs; kwok's stages are in ``stages`` beside it.
        folder: everything it writes; should be empty.
        manifests: YAML files to create at the start, such as ``deploy/base/rbac.yaml``.
        users: further accounts, known by name and without any rights.
        apiserver_args: further arguments of the API server.
        scheduler_config: further fields of the scheduler's configuration, such as ``extenders``.
        audit_users: whose every request stands in the audit log (without its body), beside all evictions.
    """

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        *,
        manifests: Sequence[Path] = (),
        users: Sequence[str] = (),
        apiserver_args: Sequence[str] = (),
        scheduler_config: dict[str, Any] | None = None,
        audit_users: Sequence[str] = (),
    ) -> None:
        self.binaries, self.folder, self.manifests = binaries, folder, manifests
        self.accounts, self._audit_users = _accounts(users), audit_users
        self._apiserver_args, self._scheduler_config = apiserver_args, scheduler_config or {}
        self._processes: list[tuple[str, subprocess.Popen[bytes], IO[bytes]]] = []
        self._guard: subprocess.Popen[bytes] | None = None
        self._ports = dict(
            zip(("etcd", "peer", "api", "kcm", "scheduler", "kwok"), _free_ports(6), strict=True)
        )

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._ports['api']}"

    @property
    def ca(self) -> Path:
        """The certificate that verifies it."""
        return self.folder / "apiserver" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON line for each eviction call and each call of ``audit_users``, written by the API server."""
        return self.folder / "audit.log"

    # ---- starting and stopping

    def start(self) -> Self:
        """Start everything and wait until it is ready.

        Raises:
            ControlPlaneError: a program is missing, ended, or was not ready in time.
        """
        self._require_programs()
        self._write_files()
        try:
            self._start_all()
            self._create_manifests()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End every process, the last started first, each by its own pid."""
        while self._processes:
            _, process, log = self._processes.pop()
            _end(process)
            log.close()
        if self._guard is not None:
            self._guard.communicate(b"done\n")
            self._guard = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _require_programs(self) -> None:
        missing = [name for name in PROGRAMS if not (self.binaries / name).is_file()]
        if missing:
            raise ControlPlaneError(
                f"{', '.join(missing)} missing in {self.binaries}; build with tests/controlplane/build.sh"
            )

    def _start_all(self) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-c", _GUARD], stdin=subprocess.PIPE, start_new_session=True
        )
        self._run("server", *self._etcd_args())
        self._run("kube-apiserver", *self._api_args())
        self._wait("the API server", self._api_is_ready)
        self._run("kube-controller-manager", *self._kcm_args())
        self._run("kube-scheduler", *self._scheduler_args())
        self._run("kwok", *self._kwok_args())
        for name in ("kcm", "scheduler"):
            self._wait(name, partial(_healthy, self._ports[name], tls=True))
        self._wait("kwok", partial(_healthy, self._ports["kwok"], tls=False))

    def _run(self, program: str, *args: str) -> None:
        log = (self.folder / f"{program}.log").open("wb")
        process = subprocess.Popen(
            [str(self.binaries / program), *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self._processes.append((program, process, log))
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.write(f"{process.pid}\n".encode())
            self._guard.stdin.flush()

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            self._require_running()
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"{what} was not ready within {START_SECONDS:g} s")
            time.sleep(0.1)

    def _require_running(self) -> None:
        for name, process, _ in self._processes:
            if process.poll() is not None:
                log = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                raise ControlPlaneError(f"{name} ended with {process.returncode}:\n{log}")

    def _api_is_ready(self) -> bool:
        try:
            return self.ca.exists() and self.request("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    # ---- speaking to it

    def kubeconfig(self, account: str = "admin") -> Path:
        """A kubeconfig for an account: ``admin``, ``web``, ``worker`` or one of ``users``."""
        path = self.folder / f"{account.replace(':', '-')}.kubeconfig"
        if not path.exists():
            _write_private(path, json.dumps(self._kubeconfig(self.accounts[account])))
        return path

    def request(
        self, method: str, path: str, body: object = None, *, account: str = "admin", patch: str = "merge"
    ) -> tuple[int, Any]:
        """One call to the API server: status and decoded answer (text where it is not JSON)."""
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection("127.0.0.1", self._ports["api"], context=context, timeout=30)
        content = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.accounts[account].token}", "Content-Type": content}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, _json_or_text(response.read())
        finally:
            connection.close()

    def create(self, manifest: dict[str, Any], path: str = "") -> Any:
        """Create an object; one that exists already is left as it is.

        Raises:
            ControlPlaneError: it was refused.
        """
        where = path or _CREATED_AT[manifest["kind"]].format(
            namespace=manifest["metadata"].get("namespace", "")
        )
        status, answer = self.request("POST", where, manifest)
        if status not in {200, 201, 202, 409}:
            raise ControlPlaneError(f"{manifest.get('kind')} was refused with {status}: {answer}")
        return answer

    def _create_manifests(self) -> None:
        documents = [
            document
            for file in self.manifests
            for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
            if document
        ]
        namespaces = {document["metadata"].get("namespace") for document in documents} - {None}
        for name in sorted(namespaces):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for document in documents:
            self.create(document)

    # ---- files and arguments

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        _write_private(self.folder / "tokens.csv", "".join(map(_token_line, self.accounts.values())))
        _write_keys(self.folder / "sa.key", self.folder / "sa.pub")
        policy = json.dumps(_audit_policy(self._audit_users))
        (self.folder / "audit-policy.yaml").write_text(policy, encoding="utf-8")
        _write_stages(self.binaries.parent / "stages", self.folder / "stages")
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig("scheduler"))},
            **self._scheduler_config,
        }
        (self.folder / "scheduler.yaml").write_text(json.dumps(scheduler), encoding="utf-8")

    def _kubeconfig(self, account: Account) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [
                {"name": "local", "cluster": {"server": self.server, "certificate-authority": str(self.ca)}}
            ],
            "users": [{"name": account.user, "user": {"token": account.token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": account.user}}],
        }

    def _etcd_args(self) -> list[str]:
        client = f"http://127.0.0.1:{self._ports['etcd']}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls=http://127.0.0.1:{self._ports['peer']}",
            "--unsafe-no-fsync",
        ]

    def _api_args(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            f"--secure-port={self._ports['api']}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder / 'apiserver'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'sa.pub'}",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={self.folder / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
            *self._apiserver_args,
        ]

    def _kcm_args(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig('kcm')}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.folder / 'sa.key'}",
            f"--controllers={_CONTROLLERS}",
            "--leader-elect=false",
            f"--secure-port={self._ports['kcm']}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'kcm'}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]

    def _scheduler_args(self) -> list[str]:
        return [
            f"--config={self.folder / 'scheduler.yaml'}",
            f"--secure-port={self._ports['scheduler']}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'scheduler'}",
        ]

    def _kwok_args(self) -> list[str]:
        stages = sorted((self.folder / "stages").glob("*.yaml"))
        return [
            f"--kubeconfig={self.kubeconfig('admin')}",
            "--manage-all-nodes=true",
            # Without leases the controllers take every node for lost after 50 s, and no pod is Ready any more.
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            f"--server-address=127.0.0.1:{self._ports['kwok']}",
            *(f"--config={stage}" for stage in stages),
        ]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def _healthy(port: int, *, tls: bool) -> bool:
    """Whether ``/healthz`` answers; these programs make certificates that nothing here could verify."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)


def _audit_policy(users: Sequence[str]) -> dict[str, Any]:
    everything = [{"level": "Metadata", "users": list(users)}] if users else []
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [_EVICTIONS, *everything, {"level": "None"}],
    }


def _write_stages(source: Path, target: Path) -> None:
    """What kwok does in a kubelet's place; a pod that says so by an annotation takes its time to be Ready."""
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.glob("*.yaml")):
        stage = yaml.safe_load(file.read_text(encoding="utf-8"))
        if stage["metadata"]["name"] == "pod-ready":
            after = {"expressionFrom": f'.metadata.annotations["{READY_AFTER}"]'}
            stage["spec"]["delay"] = {"durationMilliseconds": 0, "durationFrom": after}
        (target / file.name).write_text(yaml.safe_dump(stage), encoding="utf-8")


def _token_line(account: Account) -> str:
    groups = f',"{",".join(account.groups)}"' if account.groups else ""
    return f"{account.token},{account.user},{account.user}{groups}\n"


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _write_keys(private: Path, public: Path) -> None:
    """The pair that signs service account tokens."""
    private.touch(mode=0o600)
    try:
        subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
        subprocess.run(
            ["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ControlPlaneError(f"openssl could not make a key: {error}") from error


def _json_or_text(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a control plane until SIGTERM or SIGINT; prints where its kubeconfigs are."""
    parser = argparse.ArgumentParser(prog="deschedui.demo.controlplane", description=__doc__)
    parser.add_argument("--binaries", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, action="append", default=[])
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with ControlPlane(options.binaries, options.folder, manifests=options.manifest) as plane:
            found = {name: str(plane.kubeconfig(name)) for name in ("admin", "web", "worker")}
            print(json.dumps({"server": plane.server, "kubeconfigs": found}), flush=True)
            signal.pause()
    except ControlPlaneError as error:
        print(f"the control plane cannot run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

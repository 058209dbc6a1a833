"""One client for each cluster in this process, with the cluster's budget; and what the record says of the connection.

Tests and tools pass their own clients in through :func:`using`; nothing here is patched.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from django.db.models import Q

from decisions.models import Cluster
from decisions.services.clock import DATABASE, Clock
from deschedui.kube.budget import Budget, Lane
from deschedui.kube.client import BUDGET_SECONDS, ClusterClient
from deschedui.kube.config import ClusterConnection
from deschedui.kube.errors import (
    ConfigError,
    InvalidAnswer,
    KubeError,
    ServerError,
    Unauthorized,
    Unreachable,
)
from deschedui.kube.eviction import DEFAULT_THROTTLE_SECONDS
from deschedui.kube.leases import LeaseView
from deschedui.kube.text import sentence

CONTACT_NOTE_EVERY = timedelta(seconds=5)
LEASE_KNOWN_FOR = timedelta(seconds=10)
# These say that the cluster cannot be used; any other refusal is about one object or one right.
UNUSABLE = (ConfigError, Unreachable, Unauthorized, ServerError, InvalidAnswer)


class Connect(Protocol):
    """How a client is made; :func:`connect` in production."""

    def __call__(
        self, connection: ClusterConnection, *, budget: Budget, lane: Lane, budget_seconds: float
    ) -> ClusterClient:
        """A client for this connection; it opens nothing yet."""


def connect(
    connection: ClusterConnection, *, budget: Budget, lane: Lane, budget_seconds: float
) -> ClusterClient:
    """The real thing."""
    return ClusterClient.connect(connection, budget=budget, lane=lane, budget_seconds=budget_seconds)


@dataclass(frozen=True)
class _Terms:
    """What a client depends on; when it changes, a new client takes over."""

    connection: ClusterConnection
    requests_per_second: float
    lookups_per_second: float
    eviction_calls: int
    lease_namespace: str
    process: int

    @classmethod
    def of(cls, cluster: Cluster) -> "_Terms":
        settings = cluster.settings
        return cls(
            connection=ClusterConnection(
                name=cluster.name,
                in_cluster=cluster.in_cluster,
                kubeconfig=cluster.kubeconfig,
                context=cluster.context,
            ),
            requests_per_second=settings.requests_per_second,
            lookups_per_second=settings.lookups_per_second,
            eviction_calls=settings.eviction_calls,
            lease_namespace=settings.lease_namespace,
            process=os.getpid(),
        )

    def budget(self) -> Budget:
        return Budget(
            requests_per_second=self.requests_per_second,
            lookups_per_second=self.lookups_per_second,
            evictions_in_flight=self.eviction_calls,
        )


@dataclass
class LeaseGate:
    """What this process knows of a cluster's Lease; its lock lets one thread write it at a time.

    Attributes:
        patience: seconds that a thread waits for another one's look. An API server that swallows packets keeps one
            thread of a worker, not all of them.
    """

    patience: float = 2.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: int = 0
    outcome: str = ""
    noted_at: datetime | None = None
    _written: tuple[LeaseView, datetime] | None = None

    def recent(self, now: datetime) -> LeaseView | None:
        """The Lease as we wrote it ourselves a moment ago; whether it still is so, the next write will tell."""
        if self._written is None or now - self._written[1] >= LEASE_KNOWN_FOR:
            return None
        return self._written[0]

    def keep(self, written: LeaseView, at: datetime) -> None:
        """Remember what was written."""
        self._written = (written, at)

    def forget(self) -> None:
        """Read it again next time, and write down again how it is."""
        self._written = self.noted_at = None


class Pool:
    """The clients of this process. Thread-safe."""

    def __init__(self, connect: Connect = connect) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._budgets: dict[int, tuple[_Terms, Budget]] = {}
        self._clients: dict[tuple[int, Lane, float], tuple[_Terms, ClusterClient]] = {}
        self._gates: dict[int, tuple[_Terms, LeaseGate]] = {}

    def lease_gate(self, cluster: Cluster) -> LeaseGate:
        """The gate of this cluster, as long as it is reached in the same way."""
        terms = _Terms.of(cluster)
        with self._lock:
            known = self._gates.get(cluster.pk)
            if known is None or known[0] != terms:
                known = self._gates[cluster.pk] = (terms, LeaseGate())
        return known[1]

    def client_for(self, cluster: Cluster, lane: Lane, budget_seconds: float) -> ClusterClient:
        """The client of this cluster and lane; all of a cluster's share one budget."""
        terms, key = _Terms.of(cluster), (cluster.pk, lane, budget_seconds)
        with self._lock:
            known = self._clients.get(key)
            if known is not None and known[0] == terms:
                return known[1]
            client = self._connect(
                terms.connection,
                budget=self._budget(cluster.pk, terms),
                lane=lane,
                budget_seconds=budget_seconds,
            )
            self._clients[key] = (terms, client)
        return client

    def _budget(self, cluster_id: int, terms: _Terms) -> Budget:
        known = self._budgets.get(cluster_id)
        if known is None or known[0] != terms:
            known = self._budgets[cluster_id] = (terms, terms.budget())
        return known[1]


_pools = [Pool()]


def client_for(
    cluster: Cluster, *, lane: Lane = Lane.WORK, budget_seconds: float = BUDGET_SECONDS
) -> ClusterClient:
    """The client of this cluster in this process.

    Args:
        lane: ``Lane.WORK`` for cycles and carrying out, ``Lane.LOOKUP`` for the doors.
        budget_seconds: how long a call waits for its place in the budget.
    """
    return _pools[-1].client_for(cluster, lane, budget_seconds)


def lease_gate(cluster: Cluster) -> LeaseGate:
    """What this process knows of the cluster's Lease."""
    return _pools[-1].lease_gate(cluster)


@contextmanager
def using(connect: Connect) -> Iterator[None]:
    """Make clients this way for as long as the block runs: a fake cluster, an in-memory one."""
    _pools.append(Pool(connect))
    try:
        yield
    finally:
        _pools.pop()


# --- what the record says of a connection -----------------------------------------------------------------


@contextmanager
def contact(cluster_id: int, *, clock: Clock = DATABASE) -> Iterator[None]:
    """Note on the cluster whether what happens inside reached its API server. Errors go through."""
    try:
        yield
    except UNUSABLE as error:
        record_problem(cluster_id, problem=str(error), now=clock.now())
        raise
    except KubeError:
        raise
    else:
        record_contact(cluster_id, now=clock.now())


def record_contact(cluster_id: int, *, now: datetime, version: str = "") -> None:
    """The API server answered: no problem any more. Written at most every few seconds."""
    stale = ~Q(problem="") | Q(contacted_at=None) | Q(contacted_at__lte=now - CONTACT_NOTE_EVERY)
    columns = {"contacted_at": now, "problem": "", "problem_since": None}
    if version:
        Cluster.objects.filter(pk=cluster_id).update(**columns, server_version=version[:60])
    else:
        Cluster.objects.filter(stale, pk=cluster_id).update(**columns)


def record_problem(cluster_id: int, *, problem: str, now: datetime) -> None:
    """The API server cannot be used: why, and since when."""
    rows, text = Cluster.objects.filter(pk=cluster_id), sentence(problem, 500)
    rows.filter(problem="").update(problem=text, problem_since=now)
    rows.exclude(problem=text).update(problem=text)


def slow_down(cluster_id: int, retry_after: float | None, *, now: datetime) -> None:
    """The API server is throttling: no eviction of this cluster is claimed until then."""
    until = now + timedelta(seconds=retry_after or DEFAULT_THROTTLE_SECONDS)
    later = Q(throttled_until=None) | Q(throttled_until__lt=until)
    Cluster.objects.filter(later, pk=cluster_id).update(throttled_until=until)

"""A database as after three months: 200,000 decisions of 40 namespaces and 300 workloads, a hundred of them waiting."""

import itertools
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from decisions.models import (
    Cluster,
    Cycle,
    CycleKind,
    CycleState,
    Decision,
    Eviction,
    Executor,
    Role,
    Rule,
    Verdict,
)
from tests.builders import FORECAST, make_user

DAY = timedelta(days=1)
DAYS = 90
PENDING = 100
NAMESPACES = 40
WORKLOADS = 300
NODES = 120
CHUNK = 1_000
SPAN = 2_000

# What became of a decision, and how many of a hundred.
OUTCOMES: tuple[tuple[int, dict[str, Any]], ...] = (
    (52, {"verdict": Verdict.ALLOWED, "rule": Rule.HUMAN, "eviction": Eviction.EVICTED}),
    (16, {"verdict": Verdict.DENIED, "rule": Rule.HUMAN, "decision_reason": "Not during business hours"}),
    (12, {"verdict": Verdict.DENIED, "rule": Rule.EXTENDER, "decision_reason": "backup is running"}),
    (8, {"verdict": Verdict.EXPIRED, "rule": Rule.TIME}),
    (6, {"verdict": Verdict.WITHDRAWN, "rule": Rule.CLUSTER}),
    (3, {"verdict": Verdict.SKIPPED, "rule": Rule.EXTENDER}),
    (2, {"verdict": Verdict.ALLOWED, "rule": Rule.HUMAN, "eviction": Eviction.FAILED, "message": "boom"}),
    (1, {"verdict": Verdict.ALLOWED, "rule": Rule.HUMAN, "eviction": Eviction.GONE}),
)
PEOPLE = ("ada", "bo", "cem", "dee")
PLUGINS = ("PodLifeTime", "RemovePodsViolatingNodeTaints", "RemovePodsHavingTooManyRestarts")


def people() -> User:
    """Those who look: an approver, who sees everything."""
    return make_user("ada", Role.APPROVER)


def fill(cluster: Cluster, user: User, count: int, *, now: datetime, span: int = SPAN) -> None:
    """Make ``count`` decided decisions over 90 days: the first of them by the ORM, the rest as their copies.

    The copies come later and get UIDs and names of their own; the ORM alone would take minutes.
    """
    spans = max(count // span, 1)
    seconds = DAYS * 86_400 / spans
    rows = _decided(cluster, user, count // spans, seconds=seconds, now=now, chance=random.Random(1))
    while chunk := list(itertools.islice(rows, CHUNK)):
        Decision.objects.bulk_create(chunk)
    _copy(spans, round(seconds))


def _copy(spans: int, seconds: int) -> None:
    """Copies of every decided row that is there, ``seconds`` later each time."""
    fields = [
        field for field in Decision._meta.concrete_fields if not field.primary_key and not field.generated
    ]
    columns = [str(field.column) for field in fields]
    copy = (
        f"INSERT INTO decisions_decision ({', '.join(columns)}) "  # noqa: S608 - our own columns
        f"SELECT {', '.join(_copied(column) for column in columns)} FROM decisions_decision "
        "WHERE verdict <> 'pending' AND id <= %(last)s ORDER BY id"
    )
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA cache_size = -262144")
        cursor.execute("SELECT max(id) FROM decisions_decision")
        last = cursor.fetchone()[0]
        for number in range(1, spans):
            cursor.execute(copy, {"mark": f"{number:04x}", "shift": _shift(number * seconds), "last": last})
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA cache_size = -2000")


def _copied(column: str) -> str:
    if column in {"pod_uid", "pod_name"}:
        return f"substr({column}, 1, length({column}) - 4) || %(mark)s"
    if not column.endswith("_at"):
        return column
    if connection.vendor == "sqlite":
        return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', {column}, %(shift)s)"
    return f"{column} + %(shift)s::interval"


def _shift(seconds: int) -> str:
    return f"+{seconds} seconds" if connection.vendor == "sqlite" else f"{seconds} seconds"


def fill_pending(cluster: Cluster, *, now: datetime, count: int = PENDING) -> None:
    """Add the last day's cycles, and what waits since the newest of them."""
    chance = random.Random(7)
    cycle = _cycles(cluster, now, chance)
    Decision.objects.bulk_create(
        Decision(
            **_facts(cluster, chance, now - timedelta(seconds=30 * number)),
            cycle=cycle,
            expires_at=now + timedelta(seconds=600 + 30 * number),
        )
        for number in range(count)
    )


def _cycles(cluster: Cluster, now: datetime, chance: random.Random) -> Cycle:
    """One every five minutes, each with a document of what it filtered out; the newest."""
    ends = [now - timedelta(minutes=5 * number) for number in range(288)]
    rows = [
        Cycle(
            cluster=cluster,
            kind=CycleKind.SCHEDULED,
            state=CycleState.COMPLETED,
            started_at=end - timedelta(seconds=20),
            finished_at=end,
            deadline_at=end,
            heartbeat_at=end,
            document=chance.randbytes(100_000),
        )
        for end in ends
    ]
    Cycle.objects.bulk_create(rows, batch_size=50)
    return Cycle.objects.order_by("-started_at")[0]


def _decided(
    cluster: Cluster, user: User, count: int, *, seconds: float, now: datetime, chance: random.Random
) -> Iterator[Decision]:
    outcomes = [outcome for share, outcome in OUTCOMES for _ in range(share)]
    for number in range(count):
        at = now - timedelta(days=DAYS, hours=1) + timedelta(seconds=number * seconds / count)
        outcome = chance.choice(outcomes)
        by_human = outcome["rule"] == Rule.HUMAN
        yield Decision(
            **_facts(cluster, chance, at),
            **outcome,
            decided_by=user if by_human else None,
            decided_by_name=chance.choice(PEOPLE) if by_human else "",
            decided_at=at + timedelta(minutes=4),
            ended_at=at + timedelta(minutes=5),
            settled_at=at + timedelta(minutes=6),
            failure_mode="timeout" if chance.random() < 0.03 else "",
        )


def _facts(cluster: Cluster, chance: random.Random, at: datetime) -> dict[str, Any]:
    workload = chance.randrange(WORKLOADS)
    name, mark = f"service-{workload}", f"{chance.randrange(16**9):09x}"
    return {
        "cluster": cluster,
        "asker": "policy",
        "asker_name": "our policy",
        "executor": Executor.US,
        "pod_uid": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "namespace": f"team-{workload % NAMESPACES}",
        "pod_name": f"{name}-{mark[:4]}-{mark[4:]}",
        "node": f"node-{chance.randrange(NODES)}.eu-west-1.compute.internal",
        "owner_kind": "ReplicaSet",
        "owner_name": f"{name}-{mark[:4]}",
        "owner_uid": f"owner-{workload}",
        "workload": f"Deployment/{name}",
        "profile": "default",
        "plugin": chance.choice(PLUGINS),
        "reason": f"pod is {chance.randrange(24, 200)}h old, the policy allows at most 24h",
        "forecast": FORECAST,
        "moment": {"ready": 3, "desired": 3, "pdb": 1, "node": "n1", "policy": 1},
        "nominated_at": at,
        "created_at": at,
        "updated_at": at,
    }


def settle() -> None:
    """What a server in use has done by itself: statistics and free space (PostgreSQL)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)

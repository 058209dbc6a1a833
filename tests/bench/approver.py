"""A person who approves one pod after the other: `python -m tests.bench.approver make | approve <arrivals>`.

`make` reads pods as JSON from its input and makes a decision about each, `approve` approves them all, in the order in
which they were made, and prints how many seconds after each approval its Eviction arrived.
"""

import json
import os
import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.installation")
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - after setup()
from django.core.management import call_command  # noqa: E402

from decisions.models import Cluster, Decision, Role  # noqa: E402
from decisions.services import verdicts  # noqa: E402
from decisions.services.actors import Actor  # noqa: E402
from decisions.services.clock import db_now  # noqa: E402
from tests.builders import make_cluster, make_decision, make_user  # noqa: E402

WARM_UP = 4
LONGEST = float(os.environ.get("BENCH_LONGEST", "60"))
# The pace and the budget are for people and their clusters; here they would be all that is measured.
WIDE = {"in_flight_per_cluster": 500, "requests_per_second": 1_000, "max_waiting": 1_000}


def make(kubeconfig: str, pods: list[dict[str, Any]]) -> None:
    """Decisions that wait, one for each pod."""
    call_command("migrate", verbosity=0)
    make_user("ada", Role.APPROVER)
    unknown: dict[str, Any] = {
        "lease_checked_at": None,
        "next_lease_at": None,
    }  # its Lease is kept as anywhere
    cluster = make_cluster(kubeconfig=kubeconfig, overrides=WIDE, paused=True, **unknown)
    for pod in pods:
        _decision(cluster, pod)


def _decision(cluster: Cluster, pod: dict[str, Any]) -> Decision:
    meta, now = pod["metadata"], db_now()
    owner = meta["ownerReferences"][0]
    return make_decision(
        cluster,
        pod_uid=meta["uid"],
        namespace=meta["namespace"],
        pod_name=meta["name"],
        node=pod["spec"]["nodeName"],
        owner_kind=owner["kind"],
        owner_name=owner["name"],
        owner_uid=owner["uid"],
        forecast={"ready": 2, "desired": 2, "pdbs": []},
        nominated_at=now,
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(hours=1),
    )


def approve(arrivals: Path) -> list[float]:
    """Approve, wait for the arrival, and after a moment go on with the next."""
    ada, chance = Actor.person(User.objects.get(username="ada")), random.Random(1)
    taken = []
    for row in Decision.objects.order_by("pk"):
        started = time.time()
        verdicts.approve(decision_id=row.pk, version=row.version, by=ada, undo_seconds=0, now=db_now())
        taken.append(_arrival(arrivals, f"/pods/{row.pod_name}/eviction") - started)
        # Not in step with anything that polls.
        time.sleep(chance.uniform(0.02, 0.15))
    return taken[WARM_UP:]


def _arrival(arrivals: Path, path: str) -> float:
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        lines = arrivals.read_text(encoding="utf-8").splitlines() if arrivals.exists() else []
        for line in reversed(lines):
            seconds, _, seen = line.partition(" ")
            if seen.endswith(path):
                return float(seconds)
        time.sleep(0.002)
    raise RuntimeError(f"no Eviction arrived within {LONGEST:g} s: {path}")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], json.load(sys.stdin))
    else:
        print(json.dumps(approve(Path(sys.argv[2]))))

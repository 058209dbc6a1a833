"""Makes a database in which a caller has asked about pods and knows the answers: `python -m tests.bench.door_setup`.

Reads pods as JSON from its input. Prints the caller's token.
"""

import json
import os
import sys
from datetime import timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.bench.installation")
django.setup()

from django.core.management import call_command  # noqa: E402 - after setup()

from decisions.models import Caller, Cluster, Eviction, Executor, Rule, Verdict  # noqa: E402
from decisions.services import access  # noqa: E402
from decisions.services.actors import SYSTEM  # noqa: E402
from tests.bench import filling  # noqa: E402
from tests.builders import make_cluster, make_decision  # noqa: E402

DECIDED = 2_000


def main(kubeconfig: str, waiting: list[dict[str, Any]], told: list[dict[str, Any]]) -> str:
    """Answers for pods that wait, and for those of which the caller has heard a yes; some history beside them."""
    call_command("migrate", verbosity=0)
    now = filling.now()
    cluster = make_cluster(kubeconfig=kubeconfig)
    caller = access.register_caller(cluster=cluster, name="nightly", by=SYSTEM, now=now)
    ada = filling.people()
    filling.fill(cluster, ada, DECIDED, now=now)
    for pod in waiting:
        _decision(cluster, caller, pod)
    for pod in told:
        _decision(cluster, caller, pod, decided_by=ada, **_heard_a_yes())
    filling.settle()
    _, secret = access.issue_caller_token(caller=caller, by=SYSTEM, now=now)
    return secret


def _heard_a_yes() -> dict[str, Any]:
    now = filling.now()
    return {
        "verdict": Verdict.ALLOWED,
        "rule": Rule.HUMAN,
        "decided_by_name": "ada",
        "decided_at": now,
        "eviction": Eviction.DELEGATED,
        "told_at": now,
        "told_count": 1,
        "expires_at": now + timedelta(days=1),
    }


def _decision(cluster: Cluster, caller: Caller, pod: dict[str, Any], **fields: Any) -> None:
    now, meta = filling.now(), pod["metadata"]
    make_decision(
        cluster,
        **{
            "asker": caller.asker,
            "asker_name": caller.name,
            "caller": caller,
            "executor": Executor.ASKER,
            "pod_uid": meta["uid"],
            "namespace": meta["namespace"],
            "pod_name": meta["name"],
            "nominated_at": now,
            "created_at": now,
            "updated_at": now,
            "expires_at": now + timedelta(hours=1),
            **fields,
        },
    )


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(main(sys.argv[1], asked["waiting"], asked["told"]))

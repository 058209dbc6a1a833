"""What pages and API read about cycles."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from decisions.models import Cluster, CycleKind, Decision, Eviction, Role, Verdict
from decisions.queries import cycles as queries
from decisions.queries.access import Access
from tests.builders import make_user
from tests.domain.cycle_world import Runs, extender_args, old_pod, policy_text
from tests.engine import builders as engine

pytestmark = pytest.mark.django_db
DAEMON = engine.owned_by("agent", kind="DaemonSet")


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Runs:
    made = Runs(cluster, tmp_path)
    made.policy(policy_text())
    made.world.pods = [
        old_pod("web-1"),
        old_pod("young", age=engine.HOUR),
        old_pod("agent-1", owner=DAEMON),
        old_pod("ledger-1", namespace="bank"),
        old_pod("agent-2", namespace="bank", owner=DAEMON),
    ]
    return made


def detail(user: User, cycle_id: int) -> queries.Detail:
    found = queries.detail(Access.of(user), cycle_id)
    assert found is not None
    return found


def test_the_funnel_narrows_step_by_step(runs: Runs, viewer: User) -> None:
    funnel = detail(viewer, runs.run().pk).funnel
    assert [(step.key, step.count) for step in funnel] == [
        ("pods", 5), ("eligible", 3), ("nominated", 2), ("asked", 0), ("allowed", 0), ("evicted", 0)
    ]  # fmt: skip


def test_each_loss_says_why(runs: Runs, viewer: User) -> None:
    seen, eligible, nominated, *_ = detail(viewer, runs.run().pk).funnel
    assert [(loss.count, loss.words) for loss in seen.losses] == [(2, "DaemonSet pods")]
    assert [(loss.count, loss.words) for loss in eligible.losses] == [(1, "that no plugin wants to evict")]
    assert [(loss.count, loss.words) for loss in nominated.losses] == [(2, "waiting for a human")]


def test_a_loss_opens_its_list(runs: Runs, viewer: User) -> None:
    found = detail(viewer, runs.run().pk)
    assert [pod.name for pod in found.filtered("daemonSet")] == ["agent-2", "agent-1"]
    assert found.filtered("mirror") == []


def test_lists_show_the_namespaces_of_the_reader(runs: Runs) -> None:
    teller = make_user("tom", Role.VIEWER, namespaces=["bank"])
    found = detail(teller, runs.run().pk)
    assert [row.name for row in found.nominations] == ["ledger-1"]
    assert [pod.name for pod in found.filtered()] == ["agent-2"]
    assert found.reasons[0].count == 1


def test_what_came_of_it_is_read_from_the_decisions(runs: Runs, viewer: User) -> None:
    cycle = runs.run()
    Decision.objects.filter(pod_name="web-1").update(verdict=Verdict.ALLOWED, eviction=Eviction.EVICTED)
    counts = {step.key: step.count for step in detail(viewer, cycle.pk).funnel}
    assert (counts["allowed"], counts["evicted"]) == (1, 1)


def test_a_stranger_sees_no_cycle(runs: Runs, stranger: User) -> None:
    cycle = runs.run()
    assert queries.detail(Access.of(stranger), cycle.pk) is None
    assert not queries.listing(Access.of(stranger)).exists()


def test_a_running_cycle_has_a_page_too(runs: Runs, viewer: User) -> None:
    assert detail(viewer, runs.start().pk).funnel[0].count == 0


def test_a_dry_run_shows_what_it_would_do(runs: Runs, viewer: User) -> None:
    runs.policy(policy_text(extender=extender_args()))
    found = detail(viewer, runs.run(CycleKind.DRY_RUN).pk)
    assert [row.state for row in found.nominations] == ["would_ask", "would_ask"]
    assert found.funnel[3].count == 2


def test_the_list_is_newest_first_and_without_documents(runs: Runs, viewer: User) -> None:
    first = runs.run()
    runs.clock.forward(minutes=5)
    second = runs.run()
    assert [cycle.pk for cycle in queries.listing(Access.of(viewer))] == [second.pk, first.pk]
    assert "document" in queries.listing(Access.of(viewer))[0].get_deferred_fields()


def test_a_list_of_cycles_is_one_query(runs: Runs, viewer: User) -> None:
    runs.run()
    runs.run()
    access = Access.of(viewer)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert all(cycle.cluster.name and cycle.policy for cycle in queries.listing(access))
    assert len(asked) == 1


def test_the_latest_cycle_is_one_that_ran(runs: Runs, viewer: User) -> None:
    first = runs.start()
    runs.start(CycleKind.SCHEDULED)
    assert queries.latest(Access.of(viewer), runs.cluster) == first


@pytest.mark.parametrize(
    ("hit", "sentence"),
    [
        (
            {"kind": "node", "name": "n1", "limit": 2, "heldBack": 5, "filledBy": [17, 18]},
            "The policy's limit of 2 for node n1 held back 5 pods; open decisions 17, 18 take its places.",
        ),
        (
            {"kind": "total", "name": "", "limit": 1, "heldBack": 1, "filledBy": [17]},
            "The policy's limit of 1 held back 1 pod; open decision 17 takes its places.",
        ),
        (
            {"kind": "waiting", "name": "", "limit": 100, "heldBack": 9, "filledBy": []},
            "100 decisions wait at most on this cluster: 9 pods not recorded.",
        ),
        (
            {"kind": "owner", "name": "Deployment/web", "limit": 10, "heldBack": 2, "filledBy": []},
            "10 decisions of one owner wait at most: 2 pods of Deployment/web not recorded.",
        ),
    ],
)
def test_a_limit_is_a_sentence(hit: dict[str, object], sentence: str) -> None:
    assert queries.limit_sentence(hit) == sentence

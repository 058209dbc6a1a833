"""What the API server answers to an eviction, from the call to the record (protocols.md section 5)."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, Event, Eviction
from decisions.services import carryout, evictions
from deschedui.kube.answers import RawAnswer
from deschedui.kube.errors import TimedOut
from tests.builders import at
from tests.domain import fake_cluster
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, status, using
from tests.domain.test_carryout import UID, approved
from tests.engine.builders import build_pdb

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid=UID))
    with using(fake):
        yield fake


@pytest.fixture
def row(cluster: Cluster, ada: User, fake: FakeCluster) -> Decision:
    """An approved decision about the pod."""
    return approved(cluster, ada)


def answered(row: Decision, fake: FakeCluster, clock: FakeClock, *answers: RawAnswer) -> Decision:
    """Carry it out; the API server answers like this."""
    fake.script = list(answers)
    carryout.carry_out(row.cluster_id, worker="w1", clock=clock)
    row.refresh_from_db()
    return row


def test_ev01_another_uid_at_the_call_means_gone(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    fake.at_send = lambda _: fake.add(a_pod(uid="another"))
    row = answered(row, fake, clock)
    assert (row.eviction, fake.evicted) == (Eviction.GONE, [])
    assert "replaced before the eviction" in row.message


def test_ev02_a_budget_blocks_and_is_named(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, fake_cluster.BLOCKED)
    assert (row.eviction, row.pdb, row.not_before) == (Eviction.BLOCKED, "web", at(30))
    assert row.expires_at == at(900)


def test_ev02_a_blocked_one_goes_when_the_budget_lets_it(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    answered(row, fake, clock, fake_cluster.BLOCKED)
    clock.advance(30)
    evictions.requeue_blocked(now=clock.now())
    row = answered(row, fake, clock)
    assert (row.eviction, row.attempt, row.pdb) == (Eviction.ACCEPTED, 2, "")


def test_ev04_a_throttling_server_slows_the_whole_cluster(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    row = answered(row, fake, clock, fake_cluster.THROTTLED)
    row.cluster.refresh_from_db()
    assert (row.eviction, row.not_before, row.cluster.throttled_until) == (Eviction.QUEUED, at(7), at(7))
    assert row.failures == 0


def test_ev05_several_budgets_fail_and_all_are_named(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    fake.pdbs = [build_pdb("cart-a"), build_pdb("cart-b")]
    refused = status(500, "InternalError", "This pod has more than one PodDisruptionBudget")
    row = answered(row, fake, clock, refused)
    assert row.eviction == Eviction.FAILED
    assert "cart-a, cart-b" in row.message
    assert "shop/web-5fc9-kdpx9" in row.message


def test_ev07_not_found_is_gone_and_not_counted(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, status(404, "NotFound", 'pods "web" not found'))
    assert (row.eviction, row.accepted_at) == (Eviction.GONE, None)


def test_ev07_a_conflict_of_the_same_pod_is_tried_once_more_at_once(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    row = answered(row, fake, clock, status(409, "Conflict", "please apply your changes again"))
    assert (row.eviction, row.not_before) == (Eviction.QUEUED, at(1))


@pytest.mark.parametrize("answer", [fake_cluster.NO_ANSWER, status(504, "Timeout", "timeout")])
def test_ev07_no_answer_and_the_pod_ends_is_accepted_unconfirmed(
    row: Decision, fake: FakeCluster, clock: FakeClock, answer: RawAnswer
) -> None:
    fake.after_send = lambda _: fake.terminate(UID)
    row = answered(row, fake, clock, answer)
    assert (row.eviction, row.unconfirmed) == (Eviction.ACCEPTED, True)


def test_ev07_no_answer_and_the_pod_is_gone_is_evicted_unconfirmed(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    fake.after_send = lambda _: fake.remove(UID)
    row = answered(row, fake, clock, fake_cluster.NO_ANSWER)
    assert (row.eviction, row.unconfirmed) == (Eviction.EVICTED, True)


def test_ev07_no_answer_and_an_untouched_pod_is_tried_five_times(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    for _ in range(4):
        row = answered(row, fake, clock, fake_cluster.NO_ANSWER)
        assert row.not_before is not None
        clock.moment = row.not_before
    assert (row.eviction, row.failures) == (Eviction.QUEUED, 4)
    row = answered(row, fake, clock, fake_cluster.NO_ANSWER)
    assert (row.eviction, len(fake.sent)) == (Eviction.FAILED, 5)
    assert "given up after 5 tries" in row.events.get(kind=Event.FAILED).reason


def test_no_answer_and_a_pod_that_cannot_be_read_is_left_to_the_lease(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    def breaks(_: object) -> None:
        fake.broken = TimedOut("read pod: no complete answer")

    fake.after_send = breaks
    row = answered(row, fake, clock, fake_cluster.NO_ANSWER)
    row.cluster.refresh_from_db()
    assert (row.eviction, row.lease_until) == (Eviction.EVICTING, at(120))
    assert "no answer from the API server" in row.cluster.problem


def test_ev09_another_webhooks_denial_fails_and_is_named(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    denied = 'admission webhook "drain.strimzi.example" denied the request: kafka is handled by its operator'
    row = answered(row, fake, clock, status(400, "BadRequest", denied))
    assert (row.eviction, row.webhook) == (Eviction.FAILED, "drain.strimzi.example")
    assert "kafka is handled by its operator" in row.message


def test_ev12_accepted_is_not_evicted_yet(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock)
    assert (row.eviction, row.ended_at, row.settled_at) == (Eviction.ACCEPTED, None, None)


def test_refused_credentials_are_a_bar_and_wait(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, fake_cluster.REFUSED_CREDENTIALS)
    row.cluster.refresh_from_db()
    assert (row.eviction, row.not_before) == (Eviction.QUEUED, at(30))
    assert row.cluster.problem == "the cluster's credentials were refused (401)"


def test_a_missing_right_fails_and_names_it(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, fake_cluster.NO_RIGHT)
    assert (row.eviction, row.cause) == (Eviction.FAILED, "rbac")
    assert "create pods/eviction" in row.message


def test_a_namespace_that_ends_takes_its_pods_along(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated"}]
    row = answered(row, fake, clock, status(403, "Forbidden", "being terminated", causes=causes))
    assert row.eviction == Eviction.GONE


def test_moved_in_the_background_is_followed(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, fake_cluster.IN_BACKGROUND)
    assert (row.eviction, row.accepted_at) == (Eviction.IN_BACKGROUND, at(0))


def test_a_webhook_that_cannot_be_called_is_named_with_its_url_masked(
    row: Decision, fake: FakeCluster, clock: FakeClock
) -> None:
    text = 'failed calling webhook "guard.example": Post "https://guard.svc:443/doors/s3cret/admission": EOF'
    row = answered(row, fake, clock, status(500, "InternalError", text))
    assert (row.eviction, row.webhook, row.failures) == (Eviction.QUEUED, "guard.example", 1)
    assert "s3cret" not in row.message


def test_the_answer_is_kept_in_the_timeline(row: Decision, fake: FakeCluster, clock: FakeClock) -> None:
    row = answered(row, fake, clock, fake_cluster.BLOCKED)
    line = row.events.get(kind=Event.BLOCKED)
    assert (line.detail["http_status"], line.detail["attempt"], line.detail["pdb"]) == (429, 1, "web")

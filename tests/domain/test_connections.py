"""Clients of clusters: one for each cluster, lane and process, and what the record says of the connection."""

from typing import Any

import pytest

from decisions.models import Cluster
from decisions.services import connections
from deschedui.kube.budget import Budget, Lane
from deschedui.kube.client import ClusterClient
from deschedui.kube.config import ClusterConnection
from deschedui.kube.errors import Forbidden, KubeError, NotFound, TimedOut, Unauthorized
from tests.builders import NOW, at, make_cluster
from tests.domain.fake_cluster import FakeClock

pytestmark = pytest.mark.django_db


class Made:
    """Remembers with what clients were made."""

    def __init__(self) -> None:
        self.calls: list[tuple[ClusterConnection, Budget, Lane]] = []

    def __call__(
        self, connection: ClusterConnection, *, budget: Budget, lane: Lane, budget_seconds: float
    ) -> ClusterClient:
        self.calls.append((connection, budget, lane))
        return connections.connect(connection, budget=budget, lane=lane, budget_seconds=budget_seconds)


def test_a_cluster_has_one_client(cluster: Cluster) -> None:
    with connections.using(Made()):
        assert connections.client_for(cluster) is connections.client_for(cluster)


def test_the_lanes_of_a_cluster_share_its_budget(cluster: Cluster) -> None:
    made = Made()
    with connections.using(made):
        connections.client_for(cluster)
        connections.client_for(cluster, lane=Lane.LOOKUP)
    (_, one, _), (_, other, lane) = made.calls
    assert (one, lane) == (other, Lane.LOOKUP)


def test_two_clusters_share_nothing(cluster: Cluster) -> None:
    made = Made()
    with connections.using(made):
        assert connections.client_for(cluster) is not connections.client_for(make_cluster("other"))
    assert made.calls[0][1] is not made.calls[1][1]


@pytest.mark.parametrize("changes", [{"context": "kind-2"}, {"overrides": {"requests_per_second": 5}}])
def test_a_cluster_that_was_set_up_anew_gets_a_new_client(cluster: Cluster, changes: dict[str, Any]) -> None:
    with connections.using(Made()):
        before = connections.client_for(cluster)
        Cluster.objects.filter(pk=cluster.pk).update(**changes)
        assert connections.client_for(Cluster.objects.get()) is not before


@pytest.mark.parametrize(
    "error",
    [TimedOut("no complete answer"), Unauthorized("the cluster's credentials were refused", status=401)],
)
def test_an_unusable_cluster_is_noted_with_its_beginning(cluster: Cluster, error: KubeError) -> None:
    clock = FakeClock()
    for _ in range(2):
        with pytest.raises(KubeError), connections.contact(cluster.pk, clock=clock):
            raise error
        clock.advance(60)
    cluster.refresh_from_db()
    assert (cluster.problem, cluster.problem_since) == (str(error), NOW)


@pytest.mark.parametrize(
    "error", [Forbidden("no right", verb="get", resource="pods"), NotFound("no such pod", status=404)]
)
def test_a_refusal_about_one_object_is_no_problem_of_the_cluster(cluster: Cluster, error: KubeError) -> None:
    with pytest.raises(KubeError), connections.contact(cluster.pk, clock=FakeClock()):
        raise error
    cluster.refresh_from_db()
    assert cluster.problem == ""


def test_a_contact_is_written_now_and_then(cluster: Cluster, django_assert_num_queries: Any) -> None:
    connections.record_contact(cluster.pk, now=NOW)
    connections.record_contact(cluster.pk, now=at(4))
    cluster.refresh_from_db()
    assert cluster.contacted_at == NOW
    connections.record_contact(cluster.pk, now=at(5))
    cluster.refresh_from_db()
    assert cluster.contacted_at == at(5)


def test_the_sentence_about_a_problem_is_bounded(cluster: Cluster) -> None:
    connections.record_problem(cluster.pk, problem="x" * 10_000, now=NOW)
    cluster.refresh_from_db()
    assert len(cluster.problem) <= 500

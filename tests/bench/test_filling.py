"""What the benchmarks measure on: as many decisions as they say, over three months, each its own."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Max, Min

from decisions.models import Cluster, Decision, Verdict
from tests.bench import filling


def test_copies_are_decisions_of_their_own(cluster: Cluster, ada: User) -> None:
    filling.fill(cluster, ada, 60, now=filling.now(), span=20)
    assert Decision.objects.count() == Decision.objects.values("pod_uid").distinct().count() == 60


def test_they_cover_three_months_and_none_is_open(cluster: Cluster, ada: User) -> None:
    filling.fill(cluster, ada, 60, now=filling.now(), span=20)
    made = Decision.objects.aggregate(first=Min("created_at"), last=Max("created_at"))
    assert timedelta(days=85) < made["last"] - made["first"] < timedelta(days=90)
    assert not Decision.objects.filter(open=True).exists()


def test_a_hundred_wait(cluster: Cluster) -> None:
    filling.fill_pending(cluster, now=filling.now())
    assert Decision.objects.filter(verdict=Verdict.PENDING, cycle__isnull=False).count() == 100

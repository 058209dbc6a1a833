"""Two who write into one chain at once: no entry twice, none missing, and nobody waits for another in a circle."""

from collections.abc import Callable
from functools import partial

import pytest

from decisions.models import INSTALLATION, Chain, Cluster, Decision, DecisionEvent, Event
from decisions.services import timeline, verdicts, verification
from decisions.services.actors import SYSTEM, Actor
from tests.builders import NOW, make_cluster, make_decision
from tests.domain.test_races import race

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 15


def whole(chain: str) -> int:
    """How many entries the chain has; it is whole."""
    found = verification.verify(chain)
    assert found.broken is None, found.broken.sentence
    return found.entries


def often(change: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(TIMES):
            change()

    return run


def add(decision: Decision, *, entries: int = 1, fail: bool = False) -> None:
    """A change of a decision with its entries; or one that fails at its end."""
    with timeline.transaction():
        Decision.objects.filter(pk=decision.pk).update(updated_at=NOW)
        for _ in range(entries):
            timeline.append(decision.pk, Event.NOMINATED_AGAIN, at=NOW)
        if fail:
            raise ZeroDivisionError


def fails(decision: Decision) -> None:
    with pytest.raises(ZeroDivisionError):
        add(decision, fail=True)


def test_single_entries_bulk_and_rollbacks_at_once() -> None:
    cluster = make_cluster()
    rows = [make_decision(cluster) for _ in range(4)]
    single, bulk = often(partial(add, rows[0])), often(partial(add, rows[1], entries=40))
    audit = often(partial(timeline.audit, "paused", at=NOW, by=SYSTEM, cluster=cluster))
    assert race(single, bulk, often(partial(fails, rows[2])), audit) == [None] * 4
    assert whole(Chain.name_for(cluster.pk)) == TIMES * (1 + 40 + 1)


def test_changes_of_the_same_rows_in_opposite_orders_of_chains() -> None:
    """Both write into both chains; the chains are taken in one order whatever came first."""
    cluster, other = make_cluster(), make_cluster("other")

    def both(first: Cluster | None, second: Cluster | None) -> None:
        with timeline.transaction():
            for each in (first, second):
                timeline.audit("seen", at=NOW, by=SYSTEM, cluster=each)

    pairs = [(cluster, other), (other, cluster), (None, cluster), (other, None)]
    assert race(*(often(partial(both, *pair)) for pair in pairs)) == [None] * 4
    assert [whole(row.name) for row in Chain.objects.all()] == [3 * TIMES, 3 * TIMES, 2 * TIMES]
    assert whole(INSTALLATION) == 2 * TIMES


def test_many_approve_and_deny_in_one_cluster_at_once() -> None:
    cluster = make_cluster()
    rows = [make_decision(cluster, owner_uid=f"o{number}") for number in range(16)]

    def answer(mine: list[Decision], name: str) -> None:
        for row in mine:
            by = Actor(name=name)
            if row.pk % 2:
                verdicts.approve(decision_id=row.pk, version=1, by=by, undo_seconds=0, now=NOW)
            else:
                verdicts.deny(decision_id=row.pk, version=1, by=by, reason="no", now=NOW)

    assert race(*(partial(answer, rows[start::4], f"p{start}") for start in range(4))) == [None] * 4
    assert whole(Chain.name_for(cluster.pk)) == DecisionEvent.objects.count()
    assert DecisionEvent.objects.filter(kind__in=("approved", "denied")).count() == 16

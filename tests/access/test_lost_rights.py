"""Who lost the right before it was carried out approved nothing: back to pending, at the last test before the call."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product

import pytest
from django.contrib.auth.models import Group, User

from decisions.models import (
    ApiToken,
    Cluster,
    Decision,
    Event,
    Eviction,
    Permission,
    Role,
    RoleBinding,
    Rule,
    Verdict,
)
from decisions.queries.access import Access, decider_still_may
from decisions.services import access, carryout, evictions, verdicts
from decisions.services.actors import SYSTEM, Actor
from tests.builders import NOW, make_cluster, make_decision, make_user
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using

pytestmark = pytest.mark.django_db
UID = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001"
Lose = Callable[[User], object]


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid=UID))
    with using(fake):
        yield fake


def carry_out(cluster: Cluster) -> None:
    carryout.carry_out(cluster.pk, worker="w1", clock=FakeClock())


def approved(cluster: Cluster, by: Actor) -> Decision:
    row = make_decision(cluster, pod_uid=UID)
    return verdicts.approve(decision_id=row.pk, version=1, by=by, undo_seconds=0, now=NOW)


def state_of(row: Decision) -> tuple[str, str]:
    row.refresh_from_db()
    return row.verdict, row.eviction


def _switch_off(ada: User) -> None:
    ada.is_active = False
    ada.save()


def _group_of(ada: User) -> Group:
    group = Group.objects.create(name="sre")
    ada.role_bindings.update(user=None, group=group)
    ada.groups.add(group)
    return group


def _leave_the_group(ada: User) -> None:
    _group_of(ada)
    ada.groups.clear()


def _take_one_of_two(ada: User) -> None:
    RoleBinding.objects.create(user=ada, role=Role.ADMIN)
    ada.role_bindings.filter(role=Role.APPROVER).delete()


LOSSES: dict[str, Lose] = {
    "role taken": lambda ada: ada.role_bindings.all().delete(),
    "role lowered": lambda ada: ada.role_bindings.update(role=Role.VIEWER),
    "another namespace": lambda ada: ada.role_bindings.update(namespaces=["shopping", "sho"]),
    "another cluster": lambda ada: ada.role_bindings.get().clusters.set([make_cluster("staging")]),
    "switched off": _switch_off,
    "deleted": lambda ada: ada.delete(),
    "group left": _leave_the_group,
    "the group's role taken": lambda ada: RoleBinding.objects.filter(group=_group_of(ada)).delete(),
}
KEPT: dict[str, Lose] = {
    "nothing": lambda ada: None,
    "narrowed to here": lambda ada: ada.role_bindings.update(namespaces=["bank", "shop"]),
    "a group's role instead": _group_of,
    "given twice, taken once": _take_one_of_two,
}


@pytest.mark.parametrize("how", LOSSES)
def test_it_goes_back_to_pending(cluster: Cluster, ada: User, fake: FakeCluster, how: str) -> None:
    row = approved(cluster, Actor.person(ada))
    LOSSES[how](ada)
    carry_out(cluster)
    assert (fake.sent, state_of(row)) == ([], (Verdict.PENDING, Eviction.NONE))
    last = row.events.last()
    assert last is not None
    assert last.reason == "ada may no longer decide here"


@pytest.mark.parametrize("how", KEPT)
def test_it_goes_on_where_the_right_is_still_there(
    cluster: Cluster, ada: User, fake: FakeCluster, how: str
) -> None:
    row = approved(cluster, Actor.person(ada))
    KEPT[how](ada)
    carry_out(cluster)
    assert state_of(row) == (Verdict.ALLOWED, Eviction.ACCEPTED)


@pytest.mark.parametrize("how", LOSSES)
def test_lost_between_the_last_look_and_the_call_nothing_is_sent(
    cluster: Cluster, ada: User, fake: FakeCluster, how: str
) -> None:
    row = approved(cluster, Actor.person(ada))
    fake.at_send = lambda _: LOSSES[how](ada) if User.objects.filter(username="ada", is_active=True) else None
    carry_out(cluster)
    assert (fake.evicted, state_of(row)) == ([], (Verdict.PENDING, Eviction.NONE))
    assert row.events.filter(kind=Event.REQUEUED, reason="ada may no longer decide here").exists()


def test_an_override_needs_its_own_right(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = make_decision(cluster, pod_uid=UID, verdict=Verdict.DENIED, expires_at=None)
    verdicts.override(decision_id=row.pk, by=Actor.person(ada), reason="incident", pod_exists=True, now=NOW)
    ada.role_bindings.update(role=Role.VIEWER)
    carry_out(cluster)
    assert (fake.sent, state_of(row)[0]) == ([], Verdict.PENDING)
    assert row.events.filter(reason="ada may no longer override here").exists()


def test_what_no_human_allowed_needs_nobodys_right(cluster: Cluster, fake: FakeCluster) -> None:
    make_decision(
        cluster, pod_uid=UID, verdict=Verdict.ALLOWED, rule=Rule.UNATTENDED, eviction=Eviction.QUEUED
    )
    carry_out(cluster)
    assert fake.evicted == [UID]


# --- a token's yes --------------------------------------------------------------------------------------------


@pytest.fixture
def token(ada: User) -> ApiToken:
    until = NOW + timedelta(days=1)
    return access.create_api_token(
        owner=ada, name="ci", scopes=["decide"], expires_at=until, by=SYSTEM, now=NOW
    )[0]


def test_a_revoked_tokens_yes_counts_no_more(cluster: Cluster, token: ApiToken, fake: FakeCluster) -> None:
    row = approved(cluster, Actor.token(token))
    access.revoke_api_token(token_id=token.pk, by=SYSTEM, now=NOW)
    carry_out(cluster)
    assert (fake.sent, state_of(row)[0]) == ([], Verdict.PENDING)
    assert row.events.filter(reason="the token of ada (token ci) was revoked").exists()


def test_an_expired_tokens_yes_does(cluster: Cluster, token: ApiToken, fake: FakeCluster) -> None:
    row = approved(cluster, Actor.token(token))
    ApiToken.objects.update(expires_at=NOW - timedelta(days=1))
    carry_out(cluster)
    assert state_of(row) == (Verdict.ALLOWED, Eviction.ACCEPTED)


def test_its_owners_right_is_its_own(cluster: Cluster, token: ApiToken, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, Actor.token(token))
    ada.role_bindings.all().delete()
    carry_out(cluster)
    assert (fake.sent, state_of(row)[0]) == ([], Verdict.PENDING)


def test_back_in_pending_nobodys_token_hangs_on(
    cluster: Cluster, token: ApiToken, ada: User, fake: FakeCluster
) -> None:
    row = approved(cluster, Actor.token(token))
    access.revoke_api_token(token_id=token.pk, by=SYSTEM, now=NOW)
    carry_out(cluster)
    row.refresh_from_db()
    verdicts.approve(decision_id=row.pk, version=row.version, by=Actor.person(ada), undo_seconds=0, now=NOW)
    carry_out(cluster)
    assert state_of(row) == (Verdict.ALLOWED, Eviction.ACCEPTED)


# --- a caller's yes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", LOSSES)
def test_a_caller_is_told_no_yes_of_who_lost_the_right(cluster: Cluster, ada: User, how: str) -> None:
    row = make_decision(cluster, pod_uid=UID, executor="asker")
    verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=0, now=NOW)
    LOSSES[how](ada)
    assert not evictions.tell(row.pk, by=Actor("descheduler"), now=NOW)
    assert state_of(row)[1] == Eviction.NONE


# --- one rule -------------------------------------------------------------------------------------------------


def test_the_condition_in_a_query_is_the_rule_of_access() -> None:
    """Every binding there can be, against every place there can be."""
    clusters = [make_cluster("prod"), make_cluster("far")]
    for number, (role, places, spaces, grouped) in enumerate(
        product(Role.values, ([], clusters[:1], clusters), ([], ["shop"], ["bank", "sho"]), (False, True))
    ):
        user = make_user(f"user-{number}")
        group = Group.objects.create(name=f"group-{number}") if grouped else None
        if group is not None:
            user.groups.add(group)
        owner = {"group": group} if group is not None else {"user": user}
        RoleBinding.objects.create(role=role, namespaces=spaces, **owner).clusters.set(places)
        for cluster, namespace, override in product(clusters, ("shop", "bank"), (False, True)):
            made = {"rule": Rule.HUMAN, "decided_by": user, "override": override, "namespace": namespace}
            make_decision(cluster, verdict=Verdict.ALLOWED, **made)
    still = set(Decision.objects.filter(decider_still_may()).values_list("pk", flat=True))
    for row in Decision.objects.select_related("decided_by"):
        permission = Permission.OVERRIDE if row.override else Permission.DECIDE
        assert (row.pk in still) == Access.of(row.decided_by).may_decision(permission, row)
    assert 0 < len(still) < Decision.objects.count()

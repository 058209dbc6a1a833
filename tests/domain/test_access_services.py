"""Roles, tokens and callers: given, shown once, rotated, revoked, audited."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import ApiToken, AuditEntry, Caller, CallerToken, Cluster, Role, RoleBinding
from decisions.queries.access import Access
from decisions.services import access
from decisions.services.actors import Actor
from decisions.services.errors import Invalid
from tests.builders import NOW, at, make_cluster, make_user

pytestmark = pytest.mark.django_db
ROOT = Actor(name="root")
DAY = timedelta(days=1)


def make_caller(cluster: Cluster) -> Caller:
    return access.register_caller(name="descheduler", cluster=cluster, by=ROOT, now=NOW)


def test_a_role_gives_what_it_says_where_it_says(cluster: Cluster, stranger: User) -> None:
    access.bind_role(
        role=Role.APPROVER, user=stranger, clusters=[cluster], namespaces=["shop"], by=ROOT, now=NOW
    )
    may = Access.of(stranger).may
    assert may("decide", cluster.pk, "shop")
    assert not may("decide", cluster.pk, "bank")


def test_a_role_in_one_cluster_ends_with_it(cluster: Cluster, stranger: User) -> None:
    other = make_cluster("staging")
    make_user("bob", Role.APPROVER, clusters=[cluster, other])
    for clusters in ([cluster], [other], []):
        access.bind_role(role=Role.APPROVER, user=stranger, clusters=clusters, by=ROOT, now=NOW)
    cluster.delete()
    left = [sorted(each.clusters.values_list("name", flat=True)) for each in RoleBinding.objects.all()]
    assert left == [["staging"], ["staging"], []]


def test_a_role_is_for_a_user_or_a_group(stranger: User) -> None:
    with pytest.raises(Invalid, match="to a user or to a group"):
        access.bind_role(role=Role.VIEWER, by=ROOT, now=NOW)


@pytest.mark.parametrize("namespace", ["Shop", "a/b", "*", "x" * 64])
def test_what_cannot_be_a_namespace_is_refused(stranger: User, namespace: str) -> None:
    with pytest.raises(Invalid, match="cannot be a namespace"):
        access.bind_role(role=Role.VIEWER, user=stranger, namespaces=[namespace], by=ROOT, now=NOW)


def test_a_role_that_is_taken_away_is_audited(viewer: User, admin: User) -> None:
    assert access.unbind_role(binding_id=viewer.role_bindings.get().pk, by=ROOT, now=NOW)
    assert AuditEntry.objects.get().subject == "user vera"


def test_taking_a_role_away_twice_says_so(viewer: User) -> None:
    binding = viewer.role_bindings.get().pk
    access.unbind_role(binding_id=binding, by=ROOT, now=NOW)
    assert not access.unbind_role(binding_id=binding, by=ROOT, now=NOW)


def test_the_last_admin_stays(admin: User, viewer: User) -> None:
    with pytest.raises(Invalid, match="last admin"):
        access.unbind_role(binding_id=admin.role_bindings.get().pk, by=ROOT, now=NOW)


def test_one_of_two_admins_may_go(admin: User) -> None:
    other = make_user("zoe", Role.ADMIN)
    assert access.unbind_role(binding_id=other.role_bindings.get().pk, by=ROOT, now=NOW)
    assert RoleBinding.objects.count() == 1


def test_a_token_is_kept_as_its_hash_only(ada: User) -> None:
    token, secret = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    assert secret not in str(ApiToken.objects.values().get())
    assert secret not in str(AuditEntry.objects.values().get())
    assert access.find_api_token(secret, now=NOW) == token


def test_a_token_reads_unless_more_was_given(ada: User) -> None:
    token, _ = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    assert access.permissions_of(token.scopes) == {"view"}


def test_a_scope_to_decide_includes_reading_and_no_override() -> None:
    assert access.permissions_of(["decide"]) == {"view", "decide"}


def test_what_cannot_be_a_token_costs_no_query(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        for wrong in ("", "dui_", "x" * 1_000_000, f"dui_{'x' * 44}", f"dui_{'x' * 42}\n"):
            assert access.find_api_token(wrong, now=NOW) is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": " "}, "name"),
        ({"scopes": ["root"]}, "scopes"),
        ({"expires_at": NOW}, "expires_at"),
        ({"expires_at": NOW + 400 * DAY}, "expires_at"),
    ],
)
def test_a_token_that_cannot_be_is_refused(ada: User, fields: dict[str, object], field: str) -> None:
    wanted = {"name": "ci", "expires_at": NOW + DAY, **fields}
    with pytest.raises(Invalid) as refused:
        access.create_api_token(owner=ada, **wanted, by=ROOT, now=NOW)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_an_expired_token_is_not_found(ada: User) -> None:
    _, secret = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    assert access.find_api_token(secret, now=NOW + DAY) is None


def test_a_revoked_token_is_not_found(ada: User) -> None:
    token, secret = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    assert access.revoke_api_token(token_id=token.pk, by=ROOT, now=NOW)
    assert access.find_api_token(secret, now=NOW) is None
    assert not access.revoke_api_token(token_id=token.pk, by=ROOT, now=NOW)


def test_a_token_of_somebody_who_left_is_not_found(ada: User) -> None:
    _, secret = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert access.find_api_token(secret, now=NOW) is None


def test_the_use_of_a_token_is_noted_once_a_minute(ada: User) -> None:
    _, secret = access.create_api_token(owner=ada, name="ci", expires_at=NOW + DAY, by=ROOT, now=NOW)
    for seconds in (10, 20, 80):
        access.find_api_token(secret, now=at(seconds))
    assert ApiToken.objects.get().last_used_at == at(80)


def test_a_caller_of_a_taken_name_is_refused(cluster: Cluster) -> None:
    make_caller(cluster)
    with pytest.raises(Invalid, match="has a caller descheduler already"):
        make_caller(cluster)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"verb": "a/b"}, "verb"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"networks": ["10.0.0.0/99"]}, "networks"),
        ({"door": "back"}, "door"),
    ],
)
def test_a_caller_that_cannot_be_is_refused(cluster: Cluster, fields: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        access.register_caller(**{"name": "d", "cluster": cluster, **fields}, by=ROOT, now=NOW)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_a_callers_token_is_kept_as_its_hash_and_last_characters(cluster: Cluster) -> None:
    token, secret = access.issue_caller_token(caller=make_caller(cluster), by=ROOT, now=NOW)
    assert token.digest == access.digest_of(secret)
    assert secret.endswith(token.hint)
    assert secret not in str(list(AuditEntry.objects.values()))


def test_a_rotated_token_leaves_the_old_one_its_overlap(cluster: Cluster) -> None:
    caller = make_caller(cluster)
    old, _ = access.issue_caller_token(caller=caller, by=ROOT, now=NOW)
    new, _ = access.rotate_caller_token(caller=caller, overlap=DAY, by=ROOT, now=NOW)
    old.refresh_from_db()
    assert (old.expires_at, new.expires_at) == (NOW + DAY, None)
    assert AuditEntry.objects.filter(what="caller tokens rotated").get().detail["before it"] == 1


def test_rotating_never_prolongs_a_token(cluster: Cluster) -> None:
    caller = make_caller(cluster)
    old, _ = access.issue_caller_token(caller=caller, expires_at=at(60), by=ROOT, now=NOW)
    access.rotate_caller_token(caller=caller, overlap=DAY, by=ROOT, now=NOW)
    old.refresh_from_db()
    assert old.expires_at == at(60)


def test_a_revoked_caller_loses_all_its_tokens(cluster: Cluster) -> None:
    caller = make_caller(cluster)
    access.issue_caller_token(caller=caller, by=ROOT, now=NOW)
    assert access.revoke_caller(caller_id=caller.pk, by=ROOT, now=at(5))
    assert CallerToken.objects.get().revoked_at == at(5)


def test_a_revoked_caller_gets_no_token(cluster: Cluster) -> None:
    caller = make_caller(cluster)
    access.revoke_caller(caller_id=caller.pk, by=ROOT, now=NOW)
    caller.refresh_from_db()
    with pytest.raises(Invalid, match="was revoked"):
        access.issue_caller_token(caller=caller, by=ROOT, now=NOW)


def test_one_token_can_be_revoked(cluster: Cluster) -> None:
    token, _ = access.issue_caller_token(caller=make_caller(cluster), by=ROOT, now=NOW)
    assert access.revoke_caller_token(token_id=token.pk, by=ROOT, now=NOW)
    assert not access.revoke_caller_token(token_id=token.pk, by=ROOT, now=NOW)

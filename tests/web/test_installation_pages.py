"""A cluster that has frozen itself, as people meet it: what happened, what was withdrawn, what to do; and the word."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from decisions.models import AuditEntry, Cluster, Heartbeat
from decisions.models.enums import Stop
from decisions.queries.installation import mark
from decisions.services import installation
from tests.api.clients import api
from tests.builders import make_cluster, make_decision
from tests.web.pages import text_of

pytestmark = pytest.mark.django_db
WHY = "The Lease deschedui/deschedui counts 8, this database 7: it is older than what was done"
PAGES = ("/", "/history/", "/cycles/", "/policy/", "/extenders/", "/settings/")


@pytest.fixture
def stopped(cluster: Cluster) -> Cluster:
    """Frozen by itself, with one decision that waited."""
    Heartbeat.objects.create(name="w1", seen_at=timezone.now())
    make_decision(cluster)
    installation.stop(cluster.pk, kind=Stop.AHEAD, why=WHY, now=timezone.now())
    return Cluster.objects.get(pk=cluster.pk)


@pytest.mark.parametrize("address", PAGES)
def test_every_page_says_what_happened_and_what_to_do(address: str, as_ada: Client, stopped: Cluster) -> None:
    page = text_of(as_ada.get(address))
    assert "Cluster prod has frozen itself" in page
    assert "no eviction leaves, callers hear no, no cycle starts" in page
    assert f"{WHY}. 1 open decision was withdrawn. What was decided since is not in this database." in page
    assert "an admin confirms this installation under Settings" in page


def test_who_has_no_role_there_does_not_read_it(stopped: Cluster, stranger: User, client: Client) -> None:
    client.force_login(stranger)
    assert "frozen itself" not in text_of(client.get("/"))


def test_an_admin_confirms_on_the_settings_page(as_admin: Client, stopped: Cluster) -> None:
    given = {"what": "confirm-installation", "cluster": "prod"}
    page = text_of(as_admin.post("/settings/", given, follow=True))
    assert "Confirmed. A worker takes the Lease of prod over in a moment" in page
    assert "root has confirmed this installation" in page
    row = Cluster.objects.get()
    assert (row.confirmed_by, row.confirmed_for, row.stopped) == ("root", mark(), "ahead")


def test_confirming_takes_an_admin(as_ada: Client, stopped: Cluster) -> None:
    given = {"what": "confirm-installation", "cluster": "prod"}
    assert as_ada.post("/settings/", given).status_code == 403
    assert "Confirm this installation" not in text_of(as_ada.get("/settings/"))
    assert Cluster.objects.get().confirmed_at is None


def test_where_nothing_is_frozen_nothing_is_confirmed(as_admin: Client, cluster: Cluster) -> None:
    given = {"what": "confirm-installation", "cluster": "prod"}
    assert "nothing had to be confirmed" in text_of(as_admin.post("/settings/", given, follow=True))
    assert not AuditEntry.objects.filter(what="installation confirmed").exists()


def test_a_cycle_by_hand_is_refused_with_the_reason(as_ada: Client, stopped: Cluster) -> None:
    page = text_of(as_ada.post("/cycles/start", {"cluster": "prod", "kind": "manual"}, follow=True))
    assert "Cluster prod is frozen by itself: the Lease is ahead of the database." in page
    assert not stopped.cycles.exists()


def test_a_lease_that_cannot_be_kept_says_what_is_missing(as_ada: Client, cluster: Cluster) -> None:
    Cluster.objects.update(lease_problem="create Lease: forbidden", lease_problem_since=timezone.now())
    page = text_of(as_ada.get("/"))
    assert "The Lease of cluster prod cannot be kept" in page
    assert "get, create and update on its Lease" in page


def test_settings_show_the_lease(as_ada: Client, cluster: Cluster) -> None:
    Cluster.objects.update(lease_counter=4711)
    assert "deschedui/deschedui, count 4711" in text_of(as_ada.get("/settings/"))


def test_the_namespace_of_the_lease_is_a_setting(as_admin: Client, cluster: Cluster) -> None:
    fields = {each.name: each.value for each in as_admin.get("/settings/").context["clusters"][0]["fields"]}
    given = {**fields, "what": "settings", "cluster": "prod", "lease_namespace": "ops"}
    as_admin.post("/settings/", given)
    assert Cluster.objects.get().overrides == {"lease_namespace": "ops"}


@pytest.mark.parametrize("text", ["Ops", "a/b", "-a", "a" * 64, "..", "ops%2f"])
def test_a_namespace_that_is_none_is_refused(text: str, as_admin: Client, cluster: Cluster) -> None:
    fields = {each.name: each.value for each in as_admin.get("/settings/").context["clusters"][0]["fields"]}
    given = {**fields, "what": "settings", "cluster": "prod", "lease_namespace": text}
    assert as_admin.post("/settings/", given).status_code == 422


# --- by API -----------------------------------------------------------------------------------------------


def test_the_api_shows_it(stopped: Cluster, ada: User) -> None:
    body = api(ada, "read").get("clusters/prod/").json()
    assert (body["stopped"], body["stopped_why"], body["stopped_withdrawn"]) == ("ahead", WHY, 1)


def test_an_admin_confirms_by_api(stopped: Cluster, admin: User) -> None:
    answer = api(admin, "configure").post("clusters/prod/confirm-installation/")
    assert (answer.status_code, answer.json()["confirmed_by"]) == (200, "root (token ci)")


def test_the_api_refuses_who_may_not(stopped: Cluster, ada: User, admin: User) -> None:
    assert api(ada, "decide").post("clusters/prod/confirm-installation/").status_code == 403
    assert api(admin, "read").post("clusters/prod/confirm-installation/").status_code == 403
    assert Cluster.objects.get().confirmed_at is None


def test_a_cycle_by_api_is_refused(stopped: Cluster, ada: User) -> None:
    answer = api(ada, "decide").post("cycles/", {"cluster": "prod"})
    assert (answer.status_code, "frozen by itself" in answer.json()["detail"]) == (409, True)


# --- by command -------------------------------------------------------------------------------------------


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("confirm_installation", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_confirms_and_says_what_comes(stopped: Cluster) -> None:
    told = said("prod")
    assert WHY in told
    assert "a worker takes the Lease of prod over" in told
    assert "(command line)" in Cluster.objects.get().confirmed_by


def test_the_command_says_where_nothing_is_to_be_confirmed(cluster: Cluster) -> None:
    assert "there is nothing to confirm" in said("prod")


def test_the_command_names_the_clusters_that_there_are(cluster: Cluster) -> None:
    make_cluster("staging")
    with pytest.raises(CommandError, match="There is no cluster prd; there are: prod, staging"):
        said("prd")

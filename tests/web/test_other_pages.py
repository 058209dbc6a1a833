"""Cycles, policy, extenders, settings, shell and login."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from decisions.models import (
    ApiToken,
    AuditEntry,
    CallerToken,
    Cluster,
    Cycle,
    CycleKind,
    CycleState,
    Freeze,
    Heartbeat,
    PolicyVersion,
    Preference,
    Role,
    RoleBinding,
    TeamReason,
    Verdict,
    documents,
)
from decisions.models.documents import Document, Filtered, Nominated, ReasonCount
from deschedui.descheduler.results import FilteredOut
from tests.builders import NOW, make_cluster, make_decision, make_user
from tests.web.conftest import Make, browser_of
from tests.web.pages import text_of

pytestmark = pytest.mark.django_db
GOOD = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    pluginConfig:
      - name: ExternalDecision
        args:
          extender: {urlPrefix: "http://gate:8080", decisionVerb: evict, ignorable: true, httpTimeout: 2s}
    plugins:
      preevictionfilter: {enabled: [ExternalDecision]}
"""
BAD = GOOD.replace("httpTimeout: 2s", "httpTimeot: 2s")


def make_cycle(cluster: Cluster, **fields: Any) -> Cycle:
    now = timezone.now()
    defaults = {
        "kind": CycleKind.SCHEDULED,
        "state": CycleState.COMPLETED,
        "started_at": now,
        "deadline_at": now,
        "heartbeat_at": now,
    }
    return Cycle.objects.create(cluster=cluster, **{**defaults, **fields})


def make_policy(cluster: Cluster, text: str = GOOD, **fields: Any) -> PolicyVersion:
    defaults = {"number": 1, "digest": "x", "valid": True, "source": "file", "created_at": timezone.now()}
    return PolicyVersion.objects.create(cluster=cluster, text=text, **{**defaults, **fields})


class TestShell:
    def test_a_freeze_says_who_since_when_why_and_what_to_do(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        since = timezone.now() - timedelta(minutes=12)
        Freeze.objects.create(cluster=cluster, reason="INC-1", set_at=since, set_by="Root")
        page = text_of(as_viewer.get("/"))
        assert (
            f"Cluster prod is frozen by Root since {since:%-d %b, %H:%M:%S UTC} (12m ago): no eviction leaves. "
            "INC-1. An admin lifts it" in page
        )

    def test_a_worker_that_stopped_is_said_after_30_seconds(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        Heartbeat.objects.create(name="w@a", seen_at=timezone.now() - timedelta(seconds=29))
        assert "No worker heartbeat" not in text_of(as_viewer.get("/"))
        stopped = timezone.now() - timedelta(seconds=31)
        Heartbeat.objects.update(seen_at=stopped)
        assert (
            f"No worker heartbeat since {stopped:%-d %b, %H:%M:%S UTC} (31s ago): nothing is carried out."
        ) in text_of(as_viewer.get("/"))

    def test_a_probe_is_no_sign_of_life(self, as_viewer: Client, cluster: Cluster) -> None:
        Heartbeat.objects.create(name="probe w@a", seen_at=timezone.now())
        assert "No worker is running" in text_of(as_viewer.get("/"))

    def test_a_broken_connection_says_why(self, as_viewer: Client, cluster: Cluster) -> None:
        Cluster.objects.update(problem="401 from the API server", problem_since=timezone.now())
        page = text_of(as_viewer.get("/"))
        assert re.search(
            r"The connection to cluster prod is broken since .* UTC \(0s ago\)\. 401 from the", page
        )

    def test_the_freeze_of_a_cluster_that_is_not_mine_is_not_my_business(self, cluster: Cluster) -> None:
        Freeze.objects.create(
            cluster=make_cluster("bank"), reason="INC-2", set_at=timezone.now(), set_by="Root"
        )
        nina = browser_of(make_user("nina", Role.VIEWER, clusters=[cluster]))
        assert "INC-2" not in text_of(nina.get("/"))

    def test_a_menu_of_clusters_appears_with_the_second(self, as_viewer: Client, cluster: Cluster) -> None:
        assert b"all clusters" not in as_viewer.get("/").content
        make_cluster("staging")
        assert b'href="/?cluster=staging"' in as_viewer.get("/").content

    def test_times_are_in_the_persons_zone(self, viewer: User, make: Make) -> None:
        Preference.objects.create(user=viewer, time_zone="Europe/Berlin")
        make()
        assert b"CET" in browser_of(viewer).get("/").content

    def test_the_policy_of_the_page_lets_nothing_in_from_elsewhere(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        page = as_viewer.get("/")
        assert "default-src 'none'" in page["Content-Security-Policy"]
        for forbidden in (b" style=", b" onclick=", b"<style"):
            assert forbidden not in page.content


class TestLogin:
    def test_a_wrong_password_is_a_sentence(self, cluster: Cluster) -> None:
        page = Client().post("/login", {"username": "ada", "password": "no"})
        assert "Name and password do not match" in text_of(page)

    def test_it_goes_on_to_where_one_wanted(self, ada: User, cluster: Cluster) -> None:
        login = {"username": "ada", "password": "correct horse battery"}
        assert Client().post("/login?next=/history/", login)["Location"] == "/history/"

    def test_signing_out_is_a_post(self, as_ada: Client) -> None:
        assert as_ada.get("/logout").status_code == 405
        assert as_ada.post("/logout")["Location"] == "/login"


class TestCycles:
    document = Document(
        sentences=["is a DaemonSet pod"],
        filtered=[
            Filtered("u1", "shop", "ds-1", "n1", "default", "", "daemonSet", 0),
            Filtered("u2", "bank", "ds-2", "n1", "default", "", "daemonSet", 0),
        ],
        nominations=[
            Nominated(
                uid="u3",
                namespace="shop",
                name="web-1",
                node="n1",
                profile="default",
                plugin="PodLifeTime",
                reason="too old",
                state="would_ask",
                why="would ask https://gate",
            )
        ],
        reasons=[ReasonCount("daemonSet", "DaemonSet pods", {"shop": 412, "bank": 3})],
    )

    def stored(self, cluster: Cluster, **fields: Any) -> Cycle:
        counts = {"pods": 500, "eligible": 61, "nominated": 1}
        return make_cycle(cluster, document=documents.pack(self.document), counts=counts, **fields)

    def test_the_funnel_says_why_pods_were_lost_with_counts(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        page = text_of(as_viewer.get(f"/cycles/{self.stored(cluster).pk}/"))
        assert "seen 500 415 DaemonSet pods" in page

    def test_what_was_nominated_again_since_is_still_counted_where_it_was_nominated(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        later = make_cycle(cluster)
        one = make_decision(cluster, cycle=later, verdict=Verdict.ALLOWED, eviction="evicted", ended_at=NOW)
        row = msgspec.structs.replace(self.document.nominations[0], state="waiting", decision=one.pk)
        stored = documents.pack(msgspec.structs.replace(self.document, nominations=[row]))
        cycle = make_cycle(cluster, document=stored, counts={"pods": 500, "eligible": 61, "nominated": 1})
        assert "allowed 1 evicted 1" in text_of(as_viewer.get(f"/cycles/{cycle.pk}/"))
        assert "web-5fc9-kdpx9" in text_of(as_viewer.get(f"/cycles/{cycle.pk}/?show=evicted"))

    def test_what_became_of_a_nomination_is_said_once(self, as_viewer: Client, cluster: Cluster) -> None:
        row = msgspec.structs.replace(self.document.nominations[0], state="denied", why="denied by Ada: no")
        stored = documents.pack(msgspec.structs.replace(self.document, nominations=[row]))
        cycle = make_cycle(cluster, document=stored, counts={"nominated": 1})
        assert "too old denied by Ada: no" in text_of(as_viewer.get(f"/cycles/{cycle.pk}/"))

    def test_a_pod_that_several_profiles_leave_alone_counts_once(self) -> None:
        pods = [
            FilteredOut(
                uid="u1",
                namespace="shop",
                name="ds-1",
                node="n1",
                profile=profile,
                plugin="PodLifeTime",
                check="daemonSet",
                reason="is a DaemonSet pod",
            )
            for profile in ("weekly", "nightly")
        ]
        assert documents.build(pods, []).reasons == [ReasonCount("daemonSet", "DaemonSet pods", {"shop": 1})]

    def test_a_loss_opens_its_list(self, as_viewer: Client, cluster: Cluster) -> None:
        page = text_of(as_viewer.get(f"/cycles/{self.stored(cluster).pk}/?show=filtered&check=daemonSet"))
        assert "ds-1 shop n1 is a DaemonSet pod" in page

    def test_lists_hold_only_namespaces_that_are_mine(self, cluster: Cluster) -> None:
        nina = browser_of(make_user("nina", Role.VIEWER, namespaces=["shop"]))
        page = text_of(nina.get(f"/cycles/{self.stored(cluster).pk}/?show=filtered"))
        assert "ds-1" in page
        assert "ds-2" not in page
        assert "412 DaemonSet pods" in page

    def test_a_dry_run_says_that_it_is_one_and_what_it_would_ask(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        page = text_of(as_viewer.get(f"/cycles/{self.stored(cluster, kind=CycleKind.DRY_RUN).pk}/"))
        assert "dry run: no decision was made" in page
        assert "would ask https://gate" in page

    def test_a_config_error_stands_there_with_a_next_step(self, as_viewer: Client, cluster: Cluster) -> None:
        cycle = make_cycle(
            cluster, state=CycleState.FAILED, failure_mode="config_error", error="ca.crt cannot be read"
        )
        page = text_of(as_viewer.get(f"/cycles/{cycle.pk}/"))
        assert "config error ca.crt cannot be read" in page
        assert "No pod is nominated at all until it is corrected" in page

    def test_starting_a_dry_run_leads_to_its_page(self, as_ada: Client, cluster: Cluster) -> None:
        page = as_ada.post("/cycles/start", {"cluster": "prod", "kind": "dry"})
        assert page["Location"] == f"/cycles/{Cycle.objects.get().pk}/"
        assert Cycle.objects.get().dry

    def test_a_second_one_says_which_one_runs(self, as_ada: Client, cluster: Cluster) -> None:
        running = make_cycle(cluster, state=CycleState.RUNNING)
        page = as_ada.post("/cycles/start", {"cluster": "prod", "kind": "manual"}, follow=True)
        assert f"Cycle {running.pk} runs on prod" in text_of(page)

    def test_a_viewer_has_no_button_and_no_right_to_start(self, as_viewer: Client, cluster: Cluster) -> None:
        assert b"Dry run" not in as_viewer.get("/cycles/").content
        as_viewer.post("/cycles/start", {"cluster": "prod", "kind": "dry"})
        assert not Cycle.objects.exists()

    def test_not_mine_is_404(self, as_stranger: Client, cluster: Cluster) -> None:
        assert as_stranger.get(f"/cycles/{make_cycle(cluster).pk}/").status_code == 404


class TestPolicy:
    def test_errors_stand_beside_their_lines(self, as_viewer: Client, cluster: Cluster) -> None:
        error = {
            "message": "unknown field",
            "path": "profiles[0]",
            "line": 8,
            "column": 1,
            "hint": "did you mean x?",
            "upstream": "strict decoding error",
        }
        make_policy(cluster, BAD, valid=False, errors=[error], upstream_error="the whole text of upstream")
        page = as_viewer.get("/policy/")
        assert b'<li id="l8" class="has-error">' in page.content
        assert "did you mean x?" in text_of(page)
        assert "the whole text of upstream" in text_of(page)

    def test_a_bad_version_says_that_the_last_good_one_runs(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        make_policy(cluster)
        make_policy(cluster, BAD, number=2, valid=False)
        page = text_of(as_viewer.get("/policy/"))
        assert "version 2 has errors, version 1, the last good one, runs" in page

    def test_any_text_can_be_tried_and_nothing_is_stored(self, as_viewer: Client, cluster: Cluster) -> None:
        page = text_of(as_viewer.post("/policy/check", {"text": BAD, "cluster": "prod"}))
        assert "Your text: " in page
        assert "httpTimeout" in page
        assert not PolicyVersion.objects.exists()

    def test_an_admin_stores_a_version(self, as_admin: Client, cluster: Cluster) -> None:
        page = as_admin.post("/policy/store", {"text": GOOD, "cluster": "prod"}, follow=True)
        assert "Version 1 is stored and runs from the next cycle on." in text_of(page)

    def test_an_approver_may_not(self, as_ada: Client, cluster: Cluster) -> None:
        page = as_ada.post("/policy/store", {"text": GOOD, "cluster": "prod"})
        assert page.status_code == 403
        assert "Only an admin of all of prod" in text_of(page)

    def test_a_policy_from_a_file_is_not_edited_here(self, as_admin: Client, cluster: Cluster) -> None:
        Cluster.objects.update(policy_file="/etc/policy.yaml")
        page = as_admin.post("/policy/store", {"text": GOOD, "cluster": "prod"})
        assert page.status_code == 422
        assert "is read from /etc/policy.yaml" in text_of(page)

    def test_header_values_that_would_be_masked_are_refused(self, as_admin: Client, cluster: Cluster) -> None:
        text = GOOD.replace("httpTimeout: 2s", "httpTimeout: 2s, httpHeaders: {Authorization: Bearer s3cr3t}")
        page = as_admin.post("/policy/store", {"text": text, "cluster": "prod"})
        assert "Write ${env:NAME}" in text_of(page)


class TestExtenders:
    def test_it_shows_the_effective_url_and_the_configuration_in_words(
        self, as_viewer: Client, cluster: Cluster
    ) -> None:
        make_policy(cluster)
        page = text_of(as_viewer.get("/extenders/"))
        assert "http://gate:8080/evict profile default of prod" in page
        assert "has 2.0 s for the whole exchange" in page
        assert "evict although nobody answered" in page
        assert "Plain HTTP" in page

    def test_it_counts_recent_answers_and_failures(
        self, as_viewer: Client, make: Make, cluster: Cluster
    ) -> None:
        make_policy(cluster)
        out = {
            "effect": "allow",
            "decided_by": "answer",
            "failure_mode": None,
            "url": "http://gate:8080/evict",
            "latency_ms": 12.0,
        }
        make(extenders=[out])
        make(extenders=[{**out, "failure_mode": "timeout", "decided_by": "ignorable", "latency_ms": 2001.0}])
        assert "Last 2 calls: 1 allowed · 0 denied · 1 timeout" in text_of(as_viewer.get("/extenders/"))


class TestSettings:
    def change(self, client: Client, what: str, **data: Any) -> Any:
        return client.post("/settings/", {"what": what, **data}, follow=True)

    def test_an_admin_disarms_and_arms(self, as_admin: Client, cluster: Cluster) -> None:
        self.change(as_admin, "disarm", cluster="prod")
        assert not Cluster.objects.get().armed
        assert "prod is armed" in text_of(self.change(as_admin, "arm", cluster="prod"))

    @pytest.mark.parametrize(
        "what",
        [
            "arm",
            "disarm",
            "pause",
            "settings",
            "connection",
            "add-cluster",
            "add-caller",
            "bind",
            "unbind",
            "add-reason",
        ],
    )
    def test_an_approver_changes_nothing(self, as_ada: Client, cluster: Cluster, what: str) -> None:
        assert self.change(as_ada, what, cluster="prod", name="x").status_code in {403, 404}
        assert [entry.what for entry in AuditEntry.objects.all()] == ["signed in"]

    def test_who_may_not_configure_sees_the_state_and_who_may(
        self, as_ada: Client, admin: User, cluster: Cluster
    ) -> None:
        page = text_of(as_ada.get("/settings/"))
        assert "armed" in page
        assert "root may change it" in page

    def test_settings_are_kept_and_only_what_differs(self, as_admin: Client, cluster: Cluster) -> None:
        page = as_admin.get("/settings/")
        fields = {field.name: field.value for field in page.context["clusters"][0]["fields"]}
        self.change(as_admin, "settings", cluster="prod", **{**fields, "pending_seconds": "1800"})
        assert Cluster.objects.get().overrides == {"pending_seconds": 1800}

    def test_a_value_out_of_range_names_the_setting_and_stays_typed(
        self, as_admin: Client, cluster: Cluster
    ) -> None:
        page = self.change(as_admin, "settings", cluster="prod", pending_seconds="3")
        assert page.status_code == 422
        assert "Pending expires after" in text_of(page)
        assert b'value="3"' in page.content

    @pytest.mark.parametrize("text", ["x", "-1", "1e9", "٣", "9" * 30])
    def test_what_is_no_number_is_refused(self, as_admin: Client, cluster: Cluster, text: str) -> None:
        assert self.change(as_admin, "settings", cluster="prod", pending_seconds=text).status_code == 422

    def test_an_approver_freezes_and_hears_what_was_in_flight(self, as_ada: Client, cluster: Cluster) -> None:
        page = self.change(as_ada, "freeze", cluster="prod", reason="INC-1")
        assert "Frozen. 0 calls already in flight, 0 callers had heard a yes." in text_of(page)

    def test_lifting_takes_an_admin(self, as_ada: Client, as_admin: Client, cluster: Cluster) -> None:
        self.change(as_ada, "freeze", cluster="prod", reason="INC-1")
        pk = Freeze.objects.get().pk
        assert self.change(as_ada, "lift", pk=pk).status_code == 403
        assert "Lifted" in text_of(self.change(as_admin, "lift", pk=pk))

    def test_a_freeze_without_a_reason_is_refused(self, as_ada: Client, cluster: Cluster) -> None:
        assert self.change(as_ada, "freeze", cluster="prod", reason=" ").status_code == 422

    def test_a_callers_token_is_shown_once(self, as_admin: Client, cluster: Cluster) -> None:
        page = self.change(as_admin, "add-caller", cluster="prod", name="nightly", verb="evict")
        assert "It is shown this once." in text_of(page)
        hint = CallerToken.objects.get().hint
        assert f"{hint}</code>" in page.content.decode()
        assert "It is shown this once." not in text_of(as_admin.get("/settings/"))

    def test_a_caller_is_revoked(self, as_admin: Client, cluster: Cluster) -> None:
        self.change(as_admin, "add-caller", cluster="prod", name="nightly")
        caller = cluster.callers.get()
        assert "hears no to everything" in text_of(self.change(as_admin, "revoke-caller", pk=caller.pk))

    def test_a_role_is_given_and_taken_away(self, as_admin: Client, cluster: Cluster) -> None:
        nina = make_user("nina")
        self.change(as_admin, "bind", whom=f"user:{nina.pk}", role="viewer", namespaces="shop, bank")
        binding = RoleBinding.objects.get(user=nina)
        assert binding.namespaces == ["bank", "shop"]
        self.change(as_admin, "unbind", pk=binding.pk)
        assert not RoleBinding.objects.filter(user=nina).exists()

    def test_a_role_in_a_cluster_that_is_not_there_is_none_in_all(
        self, as_admin: Client, cluster: Cluster
    ) -> None:
        nina = make_user("nina")
        page = self.change(as_admin, "bind", whom=f"user:{nina.pk}", role="admin", clusters="gone")
        assert page.status_code == 422
        assert not RoleBinding.objects.filter(user=nina).exists()

    def test_the_last_admin_stays(self, as_admin: Client, cluster: Cluster) -> None:
        page = self.change(as_admin, "unbind", pk=RoleBinding.objects.get().pk)
        assert "last admin" in text_of(page)

    def test_a_token_of_mine_is_shown_once_and_revoked(self, as_ada: Client, cluster: Cluster) -> None:
        page = self.change(as_ada, "add-token", name="ci", scopes=["read", "decide"])
        assert "dui_" in text_of(page)
        self.change(as_ada, "revoke-token", pk=ApiToken.objects.get().pk)
        assert ApiToken.objects.get().revoked_at is not None

    def test_somebody_elses_token_does_not_exist(
        self, as_ada: Client, as_admin: Client, cluster: Cluster
    ) -> None:
        self.change(as_admin, "add-token", name="ci")
        assert self.change(as_ada, "revoke-token", pk=ApiToken.objects.get().pk).status_code == 404

    def test_preferences_are_kept(self, as_ada: Client, ada: User, cluster: Cluster) -> None:
        self.change(as_ada, "prefer", time_zone="Europe/Berlin")
        kept = Preference.objects.get(user=ada)
        assert (kept.time_zone, kept.keys) == ("Europe/Berlin", False)

    def test_a_zone_that_does_not_exist_is_refused(self, as_ada: Client, cluster: Cluster) -> None:
        assert "There is no time zone Mars/Olympus" in text_of(
            self.change(as_ada, "prefer", time_zone="Mars/Olympus")
        )

    def test_a_reason_of_the_team(self, as_admin: Client, cluster: Cluster) -> None:
        self.change(as_admin, "add-reason", text="owner asked to wait")
        assert TeamReason.objects.get().text == "owner asked to wait"

    def test_what_is_unknown_is_404(self, as_admin: Client, cluster: Cluster) -> None:
        assert self.change(as_admin, "explode").status_code == 404


@pytest.mark.parametrize("path", ["/?q=%00", "/history/?cluster=a%00b", "/history/?q=%00"])
def test_an_address_with_a_nul_is_refused_with_a_sentence(as_ada: Client, path: str) -> None:
    response = as_ada.get(path)
    assert response.status_code == 400
    assert "NUL" in response.content.decode()


def test_a_token_says_until_when_it_holds_and_that_it_does_no_more(as_admin: Client, admin: User) -> None:
    given = {"what": "add-token", "name": "nightly report", "scopes": "read"}
    as_admin.post("/settings/", given)
    token = ApiToken.objects.get()
    assert f"nightly report root read until {token.expires_at:%Y-%m-%d} never used" in text_of(
        as_admin.get("/settings/")
    )
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(days=2))
    assert "nightly report root read expired 20" in text_of(as_admin.get("/settings/"))

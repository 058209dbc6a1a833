"""Cases UI-*: what went wrong in other products' pages."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Cycle, CycleKind, CycleState, Decision, Verdict
from decisions.services import verdicts
from decisions.services.asks import Ask
from tests.builders import FORECAST, make_ask, make_cluster, make_decision, make_user
from tests.web.pages import HTMX, row_headers, text_of

EXPIRED_SESSION = {**HTMX, "HX-Current-URL": "http://testserver/?group=node"}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def waits(cluster: Cluster, **fields: Any) -> Decision:
    record = verdicts.record(ask=make_ask(cluster, **fields), now=timezone.now())
    assert record.decision is not None
    return record.decision


def press(client: Client, decision: Decision, what: str, version: int = 1, **data: str) -> Any:
    body = {"version": version, **data}
    return client.post(f"/d/{decision.pk}/{what}", body, headers=row_headers(decision.pk))


class TestUI01:
    """An htmx POST with an expired session must not put the login page into a table row."""

    def test_it_is_told_where_to_sign_in_and_comes_back_to_the_page_it_shows(self, cluster: Cluster) -> None:
        answer = Client().post(f"/d/{waits(cluster).pk}/approve", {"version": 1}, headers=EXPIRED_SESSION)
        assert answer.status_code in {200, 401}
        assert answer["HX-Redirect"] == "/login?next=%2F%3Fgroup%3Dnode"
        assert b"<form" not in answer.content

    def test_nothing_was_approved_and_nothing_is_replayed_after_the_login(
        self, cluster: Cluster, ada: User
    ) -> None:
        decision = waits(cluster)
        client = Client()
        answer = client.post(f"/d/{decision.pk}/approve", {"version": 1}, headers=EXPIRED_SESSION)
        login = {"username": "ada", "password": "correct horse battery"}
        client.post(answer["HX-Redirect"], login, follow=True)
        assert Decision.objects.get().verdict == Verdict.PENDING

    @pytest.mark.django_db
    def test_it_never_comes_back_to_somebody_elses_page(self) -> None:
        headers = {**HTMX, "HX-Current-URL": "https://evil.example/"}
        assert Client().post("/d/1/approve", headers=headers)["HX-Redirect"] == "/login?next=%2F"

    @pytest.mark.django_db
    def test_a_whole_page_is_redirected_as_usual(self) -> None:
        assert Client().get("/history/?q=web")["Location"] == "/login?next=/history/%3Fq%3Dweb"

    @pytest.mark.django_db
    def test_a_boosted_request_is_a_whole_page(self) -> None:
        assert Client().get("/", headers={**HTMX, "HX-Boosted": "true"}).status_code == 302


class TestUI03:
    """Refreshing must not lose what is typed; an unchanged answer is 204 (the rest runs in a browser)."""

    def test_unchanged_is_204_also_for_the_frame_of_other_pages(self, ada: User, cluster: Cluster) -> None:
        client = signed_in(ada)
        page = client.get("/history/").content.decode()
        token = page.split('id="bars"')[1].split('data-state="')[1].split('"')[0]
        assert client.get("/live/shell", {"bars": token}, headers=HTMX).status_code == 204

    def test_a_finished_row_has_no_trigger_of_its_own(self, ada: User, cluster: Cluster) -> None:
        row = press(signed_in(ada), waits(cluster), "approve")
        assert b"hx-trigger" not in row.content

    def test_a_finished_decisions_page_does_not_ask_for_it_any_more(
        self, ada: User, cluster: Cluster
    ) -> None:
        decision = make_decision(cluster, verdict=Verdict.EXPIRED, expires_at=None)
        assert b'hx-get="/live/decision"' not in signed_in(ada).get(f"/d/{decision.pk}/").content


class TestUI04:
    """Two people, self-review, and a request that changed between page and click."""

    def test_1_the_second_approval_is_told_who_was_first(self, ada: User, cluster: Cluster) -> None:
        decision, bo = waits(cluster), make_user("bo", "approver")
        assert press(signed_in(bo), decision, "approve").status_code == 200
        late = press(signed_in(ada), decision, "approve")
        assert late.status_code == 409
        assert "Already approved by bo." in text_of(late)

    @pytest.mark.django_db(transaction=True)
    def test_1_within_50_ms_there_is_one_approval(self) -> None:
        decision = waits(make_cluster())
        clients = [signed_in(make_user(name, "approver")) for name in ("bo", "cy")]
        barrier, answers = threading.Barrier(2), []

        def click(client: Client) -> None:
            barrier.wait()
            answers.append(press(client, decision, "approve").status_code)
            connection.close()

        threads = [threading.Thread(target=click, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200, 409]
        assert decision.events.filter(kind="approved").count() == 1

    def test_2_approve_against_deny_the_first_wins(self, ada: User, cluster: Cluster) -> None:
        decision, bo = waits(cluster), make_user("bo", "approver")
        press(signed_in(bo), decision, "deny", reason="incident")
        late = press(signed_in(ada), decision, "approve")
        assert late.status_code == 409
        assert Decision.objects.get().verdict == Verdict.DENIED

    def test_2_an_approval_can_be_taken_back_while_it_was_not_tried(
        self, ada: User, cluster: Cluster
    ) -> None:
        decision = waits(cluster)
        press(signed_in(ada), decision, "approve")
        press(signed_in(ada), decision, "take-back", reason="wrong pod")
        assert Decision.objects.get().verdict == Verdict.DENIED

    def test_3_who_started_it_cannot_approve_it(self, ada: User) -> None:
        cluster, now = make_cluster(overrides={"prevent_self_review": True}), timezone.now()
        cycle = Cycle.objects.create(
            cluster=cluster, kind=CycleKind.MANUAL, state=CycleState.RUNNING, started_at=now, deadline_at=now,
            heartbeat_at=now, started_by=ada,
        )  # fmt: skip
        row = press(signed_in(ada), waits(cluster, cycle=cycle), "approve")
        assert "somebody else has to review it" in text_of(row)
        assert Decision.objects.get().verdict == Verdict.PENDING

    def test_3_override_needs_a_reason_and_its_own_permission(
        self, ada: User, viewer: User, cluster: Cluster
    ) -> None:
        decision = waits(cluster)
        press(signed_in(ada), decision, "deny", reason="incident")
        assert press(signed_in(ada), decision, "override").status_code == 422
        refused = press(signed_in(viewer), decision, "override", reason="must go")
        assert "You may not override" in text_of(refused)
        assert Decision.objects.get().verdict == Verdict.DENIED

    def test_4_another_node_is_refused_with_what_changed(self, ada: User, cluster: Cluster) -> None:
        ask = make_ask(cluster)
        decision = self._again(ask, node="n7", reason="pod is 27h old, the policy allows at most 24h")
        row = press(signed_in(ada), decision, "approve", version=1)
        assert row.status_code == 409
        assert "node was n1, is now n7" in text_of(row)
        assert Decision.objects.get().verdict == Verdict.PENDING

    def test_4_a_number_in_the_reason_is_no_change(self, ada: User, cluster: Cluster) -> None:
        decision = self._again(make_ask(cluster), reason="pod is 27h old, the policy allows at most 24h")
        assert press(signed_in(ada), decision, "approve", version=1).status_code == 200

    def test_4_the_fresh_row_carries_the_new_version(self, ada: User, cluster: Cluster) -> None:
        decision = self._again(make_ask(cluster), forecast={**FORECAST, "ready": 3, "fits_on": []})
        row = press(signed_in(ada), decision, "approve", version=1)
        assert b'name="version" value="2"' in row.content

    @staticmethod
    def _again(ask: Ask, **changes: Any) -> Decision:
        from dataclasses import replace

        verdicts.record(ask=ask, now=timezone.now())
        record = verdicts.record(ask=replace(ask, **changes), now=timezone.now())
        assert record.decision is not None
        return record.decision

"""Approve, deny, undo, take back, override: as a row with htmx, as forms without."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from decisions.models import Decision, Eviction, TeamReason, Verdict
from decisions.services import timeline, verdicts
from decisions.services.actors import Actor
from tests.builders import FORECAST, make_user
from tests.web.conftest import Make, browser_of
from tests.web.pages import row_headers, text_of

pytestmark = pytest.mark.django_db
BAD = {**FORECAST, "ready": 2, "desired": 3, "ready_after": 1}


def approve(client: Client, decision: Decision, **data: object):  # type: ignore[no-untyped-def]
    """Click Approve in the row, as the page showed it."""
    body = {"version": decision.version, **data}
    return client.post(f"/d/{decision.pk}/approve", body, headers=row_headers(decision.pk))


def verdict_of(decision: Decision) -> str:
    return Decision.objects.get(pk=decision.pk).verdict


def test_a_click_approves_and_the_row_says_so_and_offers_undo(as_ada: Client, make: Make) -> None:
    row = approve(as_ada, make())
    assert "Approved by ada; queued to be evicted." in text_of(row)
    assert text_of(row).endswith("Undo u")
    assert b'<tbody class="row settled"' in row.content


def test_a_bad_forecast_asks_once_more_in_words(as_ada: Client, make: Make) -> None:
    decision = make(forecast=BAD)
    row = approve(as_ada, decision)
    assert "although it leaves 1 of 3 Ready? Yes, approve" in text_of(row)
    assert verdict_of(decision) == Verdict.PENDING


def test_asked_once_more_a_yes_is_a_yes(as_ada: Client, make: Make) -> None:
    decision = make(forecast=BAD)
    approve(as_ada, decision, confirmed="1")
    assert verdict_of(decision) == Verdict.ALLOWED


def test_the_question_once_more_names_cluster_and_pod(as_ada: Client, make: Make) -> None:
    row = approve(as_ada, make(forecast=BAD, pod_name="web-1"))
    assert "Evict shop/web-1 from prod although" in text_of(row)


def test_the_second_of_two_is_told_who_was_first(as_ada: Client, make: Make) -> None:
    decision = make()
    approve(browser_of(make_user("bo", "approver")), decision)
    row = approve(as_ada, decision)
    assert row.status_code == 409
    assert "Already approved by bo." in text_of(row)


def test_what_changed_since_it_was_shown_is_refused_with_what_changed(as_ada: Client, make: Make) -> None:
    decision = make()
    detail = {"version": 2, "changes": {"node": ["n1", "n9"]}}
    timeline.append(decision.pk, "nominated_again", at=timezone.now(), detail=detail)
    Decision.objects.update(version=2, node="n9")
    row = approve(as_ada, decision)
    assert row.status_code == 409
    assert "node was n1, is now n9" in text_of(row)
    assert verdict_of(decision) == Verdict.PENDING


def test_denying_asks_for_a_reason_and_offers_the_last_ones_and_the_teams(as_ada: Client, make: Make) -> None:
    TeamReason.objects.create(text="owner asked to wait")
    first, second = make(), make()
    as_ada.post(
        f"/d/{first.pk}/deny", {"version": 1, "reason": "cache is cold"}, headers=row_headers(first.pk)
    )
    form = text_of(as_ada.get(f"/d/{second.pk}/deny", headers=row_headers(second.pk)))
    assert "1 cache is cold 2 owner asked to wait" in form


def test_a_denial_without_a_reason_is_refused_and_the_form_stays(as_ada: Client, make: Make) -> None:
    decision = make()
    row = as_ada.post(
        f"/d/{decision.pk}/deny", {"version": 1, "reason": " "}, headers=row_headers(decision.pk)
    )
    assert row.status_code == 422
    assert "Say why" in text_of(row)
    assert b'name="reason"' in row.content


def test_a_denial_can_hold_shorter_than_the_clusters(as_ada: Client, make: Make) -> None:
    decision = make()
    data = {"version": 1, "reason": "release", "cooldown": "3600"}
    as_ada.post(f"/d/{decision.pk}/deny", data, headers=row_headers(decision.pk))
    until = Decision.objects.get(pk=decision.pk).cooldown_until
    assert until is not None
    assert until < timezone.now() + timedelta(hours=2)


def test_undo_makes_it_wait_again_without_a_reason(as_ada: Client, make: Make) -> None:
    decision = make()
    approve(as_ada, decision)
    row = as_ada.post(f"/d/{decision.pk}/undo", headers=row_headers(decision.pk))
    assert verdict_of(decision) == Verdict.PENDING
    assert b"data-approve" in row.content


def test_after_the_undo_time_it_says_that_it_can_be_taken_back(as_ada: Client, make: Make) -> None:
    decision = make()
    approve(as_ada, decision)
    Decision.objects.update(decided_at=timezone.now() - timedelta(seconds=9))
    row = as_ada.post(f"/d/{decision.pk}/undo", headers=row_headers(decision.pk))
    assert row.status_code == 409
    assert "Too late to undo" in text_of(row)
    assert "Take back" in text_of(row)


def test_taking_back_what_a_caller_heard_warns_that_it_may_have_acted(as_ada: Client, make: Make) -> None:
    decision = make(
        verdict=Verdict.ALLOWED, rule="human", eviction=Eviction.DELEGATED, executor="asker", asker_name="nightly",
        decided_at=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    form = text_of(as_ada.get(f"/d/{decision.pk}/take-back", headers=row_headers(decision.pk)))
    assert "nightly has heard the yes: the caller may already have acted" in form


def test_what_is_being_evicted_cannot_be_taken_back(as_ada: Client, make: Make) -> None:
    decision = make(
        verdict=Verdict.ALLOWED, rule="human", eviction=Eviction.ACCEPTED, decided_at=timezone.now()
    )
    data = {"reason": "oh no"}
    row = as_ada.post(f"/d/{decision.pk}/take-back", data, headers=row_headers(decision.pk))
    assert row.status_code == 409
    assert "Too late" in text_of(row)


def test_a_viewers_post_changes_nothing_and_says_who_may(as_viewer: Client, make: Make) -> None:
    make_user("bo", "approver")
    decision = make()
    row = approve(as_viewer, decision)
    assert "You may not decide in namespace shop of prod. bo may." in text_of(row)
    assert verdict_of(decision) == Verdict.PENDING


def test_a_strangers_post_finds_nothing(as_stranger: Client, make: Make) -> None:
    decision = make()
    assert approve(as_stranger, decision).status_code == 404
    assert verdict_of(decision) == Verdict.PENDING


def test_a_get_never_approves(as_ada: Client, make: Make) -> None:
    decision = make()
    answer = as_ada.get(f"/d/{decision.pk}/approve")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "shows no page. Nothing was changed. To the inbox" in text_of(answer)
    assert verdict_of(decision) == Verdict.PENDING


def test_without_the_csrf_token_nothing_happens(make: Make) -> None:
    decision = make()
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("cy", "approver"))
    page = client.post(f"/d/{decision.pk}/approve", {"version": 1})
    assert page.status_code == 403
    assert "The form has expired" in text_of(page)
    assert verdict_of(decision) == Verdict.PENDING


class TestWithoutJavaScript:
    def test_approve_goes_back_to_the_inbox_and_says_what_was_done(self, as_ada: Client, make: Make) -> None:
        decision = make(pod_name="web-1")
        data = {"version": 1, "next": "/?group=node"}
        page = as_ada.post(f"/d/{decision.pk}/approve", data, follow=True)
        assert page.redirect_chain == [("/?group=node", 302)]
        assert "Approved: shop/web-1 in prod will be evicted." in text_of(page)

    def test_a_bad_forecast_asks_once_more_on_a_page_of_its_own(self, as_ada: Client, make: Make) -> None:
        decision = make(forecast=BAD)
        page = as_ada.post(f"/d/{decision.pk}/approve", {"version": 1})
        assert "leaves 1 of 3 Ready? Yes, approve" in text_of(page)
        assert b'name="confirmed" value="1"' in page.content

    def test_deny_is_a_link_to_a_form(self, as_ada: Client, make: Make) -> None:
        decision = make()
        form = as_ada.get(f"/d/{decision.pk}/deny")
        assert f'action="/d/{decision.pk}/deny"'.encode() in form.content

    def test_a_conflict_shows_the_fresh_state(self, as_ada: Client, make: Make) -> None:
        decision = make()
        bo = Actor.person(make_user("bo", "approver"))
        verdicts.deny(decision_id=decision.pk, version=1, by=bo, reason="incident", now=timezone.now())
        page = as_ada.post(f"/d/{decision.pk}/approve", {"version": 1})
        assert page.status_code == 409
        assert "Already denied by bo." in text_of(page)
        assert "Denied by bo: incident" in text_of(page)

    def test_next_never_leads_away_from_here(self, as_ada: Client, make: Make) -> None:
        decision = make()
        page = as_ada.post(f"/d/{decision.pk}/approve", {"version": 1, "next": "https://evil.example/"})
        assert page["Location"] == "/"

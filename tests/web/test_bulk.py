"""Many at once: listed before, said for each after."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from decisions.models import Decision, Role, Verdict
from decisions.services import verdicts
from decisions.services.actors import Actor
from tests.builders import FORECAST, make_user
from tests.web.conftest import Make, browser_of
from tests.web.pages import HTMX, text_of

pytestmark = pytest.mark.django_db


def picked(*decisions: Decision) -> list[str]:
    return [f"{each.pk}:{each.version}" for each in decisions]


def verdicts_of(*decisions: Decision) -> list[str]:
    return [Decision.objects.get(pk=each.pk).verdict for each in decisions]


def test_the_bar_says_how_many_and_what_a_pdb_would_block(as_ada: Client, make: Make) -> None:
    rows = picked(make(), make(node="n2"), make(workload="Deployment/api", forecast={**FORECAST, "pdbs": []}))
    said = text_of(as_ada.get("/bulk/summary", {"row": rows}))
    assert said == "3 pods of 2 workloads on 2 nodes; 1 would be blocked by PDB web"


def test_a_pod_that_two_ask_for_counts_once(as_ada: Client, make: Make) -> None:
    rows = picked(make(pod_uid="u"), make(pod_uid="u", asker="caller:1"))
    assert text_of(as_ada.get("/bulk/summary", {"row": rows})).startswith("1 pod of 1 workload")


def test_the_confirmation_lists_them_and_decides_nothing(as_ada: Client, make: Make) -> None:
    one, two = make(pod_name="web-1"), make(pod_name="web-2")
    page = text_of(as_ada.post("/bulk/", {"row": picked(one, two), "answer": "approve"}, headers=HTMX))
    assert "Approve 2 decisions?" in page
    assert "shop/web-1 on n1 in prod" in page
    assert verdicts_of(one, two) == [Verdict.PENDING] * 2


def test_the_confirmation_repeats_what_speaks_against_it(as_ada: Client, make: Make) -> None:
    bad = make(forecast={**FORECAST, "fits_on": []})
    page = text_of(as_ada.post("/bulk/", {"row": picked(bad), "answer": "approve"}))
    assert "no other node has room for its replacement" in page
    assert "Yes, approve 1" in page


def test_what_changed_since_it_was_drawn_is_not_in_it(as_ada: Client, make: Make) -> None:
    one, two = make(pod_name="web-1"), make(pod_name="web-2")
    rows = picked(one, two)
    Decision.objects.filter(pk=two.pk).update(version=2)
    page = text_of(as_ada.post("/bulk/", {"row": rows, "answer": "approve"}))
    assert "Approve 1 decision?" in page
    assert "Left out: shop/web-2 It changed since it was shown" in page


def test_each_result_is_said_and_what_others_decided_is_no_error(as_ada: Client, make: Make) -> None:
    one, two = make(pod_name="web-1"), make(pod_name="web-2")
    bo = Actor.person(make_user("bo", Role.APPROVER))
    verdicts.deny(decision_id=two.pk, version=1, by=bo, reason="incident", now=timezone.now())
    page = as_ada.post("/bulk/apply", {"row": picked(one, two), "answer": "approve"}, headers=HTMX)
    assert page.status_code == 200
    assert "1 of 2 approved" in text_of(page)
    assert "web-2 Denied by bo: incident" in text_of(page)


def test_denying_many_needs_a_reason(as_ada: Client, make: Make) -> None:
    one = make()
    page = as_ada.post("/bulk/apply", {"row": picked(one), "answer": "deny", "reason": ""}, headers=HTMX)
    assert page.status_code == 422
    assert "Say why" in text_of(page)
    assert verdicts_of(one) == [Verdict.PENDING]


def test_denying_many_gives_each_the_reason(as_ada: Client, make: Make) -> None:
    rows = [make(), make()]
    as_ada.post(
        "/bulk/apply", {"row": picked(*rows), "answer": "deny", "reason": "release", "cooldown": "3600"}
    )
    assert set(Decision.objects.values_list("decision_reason", flat=True)) == {"release"}


def test_what_is_not_mine_is_left_out(make: Make) -> None:
    mine, theirs = make(namespace="shop"), make(namespace="bank", pod_name="secret")
    nina = browser_of(make_user("nina", Role.APPROVER, namespaces=["shop"]))
    page = nina.post("/bulk/apply", {"row": picked(mine, theirs), "answer": "approve"})
    assert "secret" not in text_of(page)
    assert verdicts_of(mine, theirs) == [Verdict.ALLOWED, Verdict.PENDING]


def test_a_viewer_is_told_that_they_may_not(as_viewer: Client, make: Make) -> None:
    one = make()
    page = text_of(as_viewer.post("/bulk/apply", {"row": picked(one), "answer": "approve"}))
    assert "You may not decide in this namespace." in page
    assert verdicts_of(one) == [Verdict.PENDING]


def test_all_who_ask_for_one_pod_are_answered_together(as_ada: Client, make: Make) -> None:
    ours = make(pod_uid="u")
    make(pod_uid="u", asker="caller:7", asker_name="nightly", executor="asker")
    make(pod_uid="other", pod_name="not-this")
    assert "all 2: approve… deny…" in text_of(as_ada.get("/"))
    page = text_of(as_ada.post("/bulk/", {"pod": f"{ours.pk}:deny"}, headers=HTMX))
    assert "Deny 2 decisions?" in page
    assert "nightly" in page
    assert "not-this" not in page


@pytest.mark.parametrize("row", ["", "x", "1", "1:x", ":", "9" * 40, "1:1:1", "-1:2"])
def test_nonsense_picks_nothing(as_ada: Client, make: Make, row: str) -> None:
    one = make()
    assert as_ada.post("/bulk/apply", {"row": row, "answer": "approve"}).status_code == 200
    assert as_ada.post("/bulk/", {"pod": row, "answer": "approve"}).status_code in {200, 404}
    assert verdicts_of(one) == [Verdict.PENDING]


def test_what_expired_meanwhile_is_said(as_ada: Client, make: Make) -> None:
    late = make(expires_at=timezone.now() - timedelta(seconds=1))
    page = text_of(as_ada.post("/bulk/apply", {"row": picked(late), "answer": "approve"}))
    assert "Nobody answered in time." in page

"""Live updates: what differs and nothing else, without taking a row from under somebody's fingers."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from decisions.models import Decision, Freeze, Verdict
from decisions.services import verdicts
from decisions.services.actors import Actor
from tests.builders import make_user
from tests.web.conftest import Make
from tests.web.pages import HTMX, text_of

pytestmark = pytest.mark.django_db


def shown(page: Any) -> dict[str, str]:
    """What live.js would say that this page shows."""
    body = page.content.decode()
    rows = re.findall(r'data-decision="(\d+)"[^>]* data-state="(\w+)"', body)
    groups = re.findall(r'id="(g-\w+)" data-state="(\w+)"', body)
    bars = re.search(r'id="bars"[^>]* data-state="(\w+)"', body)
    return {
        "rows": ",".join(f"{pk}.{state}" for pk, state in rows),
        "groups": ",".join(f"{key}.{state}" for key, state in groups),
        "bars": bars[1] if bars else "",
        "title": "Inbox · deschedui",
    }


def poll(client: Client, said: dict[str, str]) -> Any:
    return client.get("/live/inbox", said, headers=HTMX)


def test_nothing_changed_is_204(as_ada: Client, make: Make) -> None:
    make()
    assert poll(as_ada, shown(as_ada.get("/"))).status_code == 204


def test_decided_elsewhere_the_row_turns_into_its_outcome(as_ada: Client, make: Make) -> None:
    decision, other = make(pod_name="web-1"), make(pod_name="web-2")
    said = shown(as_ada.get("/"))
    bo = Actor.person(make_user("bo", "approver"))
    verdicts.deny(decision_id=decision.pk, version=1, by=bo, reason="incident", now=timezone.now())
    update = poll(as_ada, said)
    assert "Denied by bo: incident" in text_of(update)
    assert f'id="d-{decision.pk}"'.encode() in update.content
    assert f'id="d-{other.pk}"'.encode() not in update.content


def test_the_title_counts_down_with_it(as_ada: Client, make: Make) -> None:
    decision = make()
    make()
    said = shown(as_ada.get("/"))
    bo = Actor.person(make_user("bo", "approver"))
    verdicts.deny(decision_id=decision.pk, version=1, by=bo, reason="incident", now=timezone.now())
    assert b"<title>(1) Inbox" in poll(as_ada, said).content


def test_new_ones_wait_behind_a_bar(as_ada: Client, make: Make) -> None:
    make()
    said = shown(as_ada.get("/"))
    make(pod_name="newcomer")
    update = poll(as_ada, said)
    assert "1 new" in text_of(update)
    assert "newcomer" not in text_of(update)


def test_into_an_empty_list_new_ones_come_at_once(as_ada: Client, make: Make, worker: object) -> None:
    said = shown(as_ada.get("/"))
    make(pod_name="newcomer")
    assert "newcomer" in text_of(poll(as_ada, said))


def test_a_head_whose_group_shrank_is_drawn_anew(as_ada: Client, make: Make) -> None:
    decision = make()
    make()
    said = shown(as_ada.get("/"))
    bo = Actor.person(make_user("bo", "approver"))
    verdicts.deny(decision_id=decision.pk, version=1, by=bo, reason="incident", now=timezone.now())
    assert "1 pod asked for" in text_of(poll(as_ada, said))


def test_approved_elsewhere_before_it_was_shown_here_it_appears_among_the_approved(
    as_ada: Client, make: Make
) -> None:
    make()
    said = shown(as_ada.get("/"))
    make(
        pod_name="approved-one", verdict="allowed", rule="human", eviction="queued", decided_at=timezone.now()
    )
    update = text_of(poll(as_ada, said))
    assert "Approved, not gone yet" in update
    assert "approved-one" in update


def test_a_row_of_the_list_that_was_approved_is_not_shown_twice(as_ada: Client, make: Make) -> None:
    decision = make()
    said = shown(as_ada.get("/"))
    bo = Actor.person(make_user("bo", "approver"))
    verdicts.approve(decision_id=decision.pk, version=1, by=bo, undo_seconds=5, now=timezone.now())
    assert poll(as_ada, said).content.count(f'id="d-{decision.pk}"'.encode()) == 1


def test_a_freeze_appears_on_the_page_that_is_open(as_ada: Client, make: Make) -> None:
    make()
    said = shown(as_ada.get("/"))
    Freeze.objects.create(reason="INC-1", set_at=timezone.now(), set_by="root")
    assert "All clusters are frozen by root" in text_of(poll(as_ada, said))


def test_a_lost_session_is_a_bare_401_for_a_poll(make: Make) -> None:
    update = Client().get("/live/inbox", headers=HTMX)
    assert update.status_code == 401
    assert "HX-Redirect" not in update.headers


def test_what_is_not_mine_does_not_appear(as_stranger: Client, make: Make) -> None:
    decision = make(pod_name="secret")
    update = poll(as_stranger, {"rows": f"{decision.pk}.0"})
    assert "secret" not in text_of(update)


@pytest.mark.parametrize("rows", ["", "x", "1", "1.", "-1.a", "9" * 40 + ".a", ",,,", "1.a" * 5000])
def test_nonsense_is_no_error(as_ada: Client, make: Make, rows: str) -> None:
    make()
    assert as_ada.get("/live/inbox", {"rows": rows}, headers=HTMX).status_code in {200, 204}


def test_a_poll_without_a_change_is_cheap(
    as_ada: Client, make: Make, django_assert_max_num_queries: Any
) -> None:
    for number in range(40):
        make(pod_name=f"web-{number}")
    said = shown(as_ada.get("/"))
    with django_assert_max_num_queries(13):
        assert poll(as_ada, said).status_code == 204


def test_a_decisions_page_asks_less_often_once_only_a_person_can_change_it(
    as_ada: Client, make: Make
) -> None:
    decision = make()
    said = shown(as_ada.get(f"/d/{decision.pk}/"))
    bo = Actor.person(make_user("bo", "approver"))
    verdicts.deny(decision_id=decision.pk, version=1, by=bo, reason="incident", now=timezone.now())
    update = as_ada.get("/live/decision", said, headers=HTMX)
    assert "Denied by bo: incident" in text_of(update)
    assert b'hx-get="/live/decision"' in update.content
    assert b'data-every="5000"' in update.content


def test_a_decisions_page_follows_an_eviction_until_its_replacement_is_ready(
    as_ada: Client, make: Make
) -> None:
    now = timezone.now()
    decision = make(verdict=Verdict.ALLOWED, rule="human", eviction="evicted", decided_at=now, ended_at=now)
    page = as_ada.get(f"/d/{decision.pk}/")
    assert b'data-every="1500"' in page.content
    Decision.objects.update(replacement_name="web-2", replacement_ready_at=now, updated_at=now)
    update = as_ada.get("/live/decision", shown(page), headers=HTMX)
    assert "Replaced by web-2, Ready" in text_of(update)
    assert b'hx-get="/live/shell"' in update.content


def test_an_unfolded_row_stays_unfolded(as_ada: Client, make: Make) -> None:
    decision = make()
    said = shown(as_ada.get("/"))
    Decision.objects.update(version=2, node="n9")
    update = poll(as_ada, {**said, "open": f"{decision.pk}.x"})
    assert "If you say yes" in text_of(update)

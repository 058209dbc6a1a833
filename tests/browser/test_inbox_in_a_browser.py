"""The inbox as people use it: mouse, keyboard, phone; together with others."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from decisions.models import Decision, TeamReason, Verdict
from decisions.services import verdicts
from decisions.services.actors import Actor
from tests.browser.conftest import Open
from tests.builders import FORECAST

pytestmark = [pytest.mark.browser, pytest.mark.real]
Waiting = Callable[..., Decision]
BAD = {**FORECAST, "fits_on": []}


def verdict_of(decision: Decision) -> str:
    return Decision.objects.get(pk=decision.pk).verdict


def deny_elsewhere(decision: Decision, name: str = "Bo") -> None:
    verdicts.deny(
        decision_id=decision.pk,
        version=decision.version,
        by=Actor(name),
        reason="incident",
        now=timezone.now(),
    )


def test_a_click_approves(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting()
    page = window(ada).go("/")
    page.get_by_role("button", name="Approve: evict shop/web-5fc9-kdpx9 from prod").click()
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Approved by ada")
    assert verdict_of(decision) == Verdict.ALLOWED


def test_undo_within_its_seconds(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting()
    page = window(ada).go("/")
    page.get_by_role("button", name=re.compile("^Approve: ")).click()
    page.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.locator(f"#d-{decision.pk} [data-approve]")).to_be_visible()
    assert verdict_of(decision) == Verdict.PENDING


def test_the_keyboard_alone_approves_and_undoes(window: Open, ada: User, waiting: Waiting) -> None:
    first, second = waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator(f"#d-{second.pk}")).to_contain_text("Approved by ada")
    page.keyboard.press("u")
    expect(page.locator(f"#d-{second.pk} [data-approve]")).to_be_visible()
    assert {verdict_of(first), verdict_of(second)} == {Verdict.PENDING}


def test_the_keyboard_alone_denies_with_a_reason_one_key_away(
    window: Open, ada: User, waiting: Waiting
) -> None:
    TeamReason.objects.create(text="owner asked to wait")
    decision = waiting()
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_role("button", name=re.compile("owner asked to wait"))).to_be_focused()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Denied by ada: owner asked to wait")


def test_letters_start_a_reason_of_ones_own(window: Open, ada: User, waiting: Waiting) -> None:
    TeamReason.objects.create(text="owner asked to wait")
    decision = waiting()
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_role("button", name=re.compile("owner asked to wait"))).to_be_focused()
    page.keyboard.type("jam in the queue")
    page.keyboard.press("Enter")
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Denied by ada: jam in the queue")


def test_a_bad_forecast_asks_once_more_and_escape_cancels(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting(forecast=BAD)
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Yes, approve")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Yes, approve")).to_have_count(0)
    assert verdict_of(decision) == Verdict.PENDING


def test_why_unfolds_and_folds(window: Open, ada: User, waiting: Waiting) -> None:
    waiting()
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="If you say yes")).to_be_visible()
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="If you say yes")).to_be_hidden()


def test_enter_opens_and_g_i_comes_back(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting()
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/d/{decision.pk}/")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url(lambda url: url.endswith("/"))
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


def test_the_list_of_keys(window: Open, ada: User, waiting: Waiting) -> None:
    page = window(ada).go("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_a_decision_made_elsewhere_appears_within_two_seconds(
    window: Open, ada: User, waiting: Waiting
) -> None:
    decision = waiting()
    page = window(ada).go("/")
    page.wait_for_timeout(300)
    deny_elsewhere(decision)
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Denied by Bo: incident", timeout=2000)
    expect(page).to_have_title(re.compile("^Inbox"))


def test_it_leaves_when_the_reader_moves_on(window: Open, ada: User, waiting: Waiting) -> None:
    decision, other = waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    deny_elsewhere(decision)
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Denied by Bo")
    page.locator(f"#d-{other.pk} .why").click()
    expect(page.locator(f"#d-{decision.pk}")).to_have_count(0)


def test_what_i_approved_moves_to_the_approved_when_i_move_on(
    window: Open, ada: User, waiting: Waiting
) -> None:
    decision, other = waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    page.locator(f"#d-{decision.pk} [data-approve]").click()
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Approved by ada")
    Decision.objects.filter(pk=decision.pk).update(decided_at=timezone.now() - timedelta(seconds=9))
    expect(page.get_by_role("button", name="Take back")).to_be_visible()
    page.locator(f"#d-{other.pk} .why").click()
    expect(page.locator(f"#after #d-{decision.pk}")).to_contain_text("Approved by ada", timeout=4000)


def test_typed_text_and_focus_survive_updates(window: Open, ada: User, waiting: Waiting) -> None:
    mine, other = waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    page.locator(f"#d-{mine.pk} [data-deny]").click()
    field = page.locator(f"#reason-{mine.pk}")
    field.fill("the cache is")
    deny_elsewhere(other)
    deny_elsewhere(mine, "Cy")
    expect(page.locator(f"#d-{other.pk}")).to_contain_text("Denied by Bo")
    expect(page.locator(f"#d-{mine.pk}")).to_contain_text("Meanwhile: Denied by Cy: incident")
    expect(field).to_have_value("the cache is")
    expect(field).to_be_focused()


def test_on_its_own_page_too_the_typed_text_survives_what_others_decide(
    window: Open, ada: User, waiting: Waiting
) -> None:
    decision = waiting()
    page = window(ada).go(f"/d/{decision.pk}/")
    page.keyboard.press("d")
    field = page.locator(f"#reason-{decision.pk}")
    field.fill("not during the")
    deny_elsewhere(decision)
    expect(page.locator("#decision")).to_contain_text("Meanwhile: Denied by Bo: incident", timeout=4000)
    expect(field).to_have_value("not during the")


def test_the_focus_stays_on_the_row_that_was_drawn_anew(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting()
    page = window(ada).go("/")
    page.keyboard.press("j")
    Decision.objects.filter(pk=decision.pk).update(version=2, reason="pod is 27h old")
    expect(page.locator(f"#d-{decision.pk}")).to_contain_text("27h old")
    expect(page.locator(f"#d-{decision.pk}")).to_be_focused()


def test_new_ones_wait_behind_a_bar_until_asked_for(window: Open, ada: User, waiting: Waiting) -> None:
    waiting(pod_name="web-1")
    page = window(ada).go("/")
    newcomer = waiting(pod_name="newcomer")
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    expect(page.locator(f"#d-{newcomer.pk}")).to_have_count(0)
    page.keyboard.press("n")
    expect(page.locator(f"#d-{newcomer.pk}")).to_be_visible()


def test_into_an_empty_inbox_they_come_by_themselves(window: Open, ada: User, waiting: Waiting) -> None:
    page = window(ada).go("/")
    expect(page.get_by_text("Nothing waits for a decision.")).to_be_visible()
    newcomer = waiting(pod_name="newcomer")
    expect(page.locator(f"#d-{newcomer.pk}")).to_be_visible(timeout=2500)


def test_many_at_once_lists_them_and_says_what_happened_to_each(
    window: Open, ada: User, waiting: Waiting
) -> None:
    first, second = waiting(pod_name="web-1"), waiting(pod_name="web-2", node="n2")
    page = window(ada).go("/")
    page.get_by_role("checkbox", name="Select all of Deployment web").check()
    expect(page.locator("#bulk-bar")).to_contain_text(
        "2 pods of 1 workload on 2 nodes; 1 would be blocked by PDB web"
    )
    page.get_by_role("button", name="Approve…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("shop/web-1")
    deny_elsewhere(second)
    dialog.get_by_role("button", name="Approve 2").click()
    expect(dialog).to_contain_text("1 of 2 approved")
    expect(dialog).to_contain_text("Denied by Bo: incident")
    assert verdict_of(first) == Verdict.ALLOWED
    assert verdict_of(second) == Verdict.DENIED


def test_many_are_denied_with_a_reason_one_key_away(window: Open, ada: User, waiting: Waiting) -> None:
    TeamReason.objects.create(text="owner asked to wait")
    waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    page.get_by_role("checkbox", name="Select all of Deployment web").check()
    page.get_by_role("button", name="Deny…").click()
    expect(page.get_by_role("button", name=re.compile("owner asked to wait"))).to_be_focused()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("2 of 2 denied")
    assert set(Decision.objects.values_list("decision_reason", flat=True)) == {"owner asked to wait"}


def test_a_pod_that_changed_since_it_was_picked_is_left_out(
    window: Open, ada: User, waiting: Waiting
) -> None:
    first, second = waiting(pod_name="web-1"), waiting(pod_name="web-2")
    page = window(ada).go("/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    Decision.objects.filter(pk=second.pk).update(version=2, node="n9")
    expect(page.locator(f"#d-{second.pk} .node")).to_contain_text("n9")
    expect(page.locator("#bulk-bar")).to_contain_text("1 pod of 1 workload")
    assert verdict_of(first) == Verdict.PENDING


def test_hidden_tabs_are_silent(window: Open, ada: User, waiting: Waiting) -> None:
    waiting()
    mine = window(ada)
    page = mine.go("/")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    page.wait_for_timeout(200)
    before = len(mine.requests)
    page.wait_for_timeout(2200)
    assert [url for url in mine.requests[before:] if "/live/" in url] == []


def test_a_page_that_cannot_be_updated_says_since_when(window: Open, ada: User, waiting: Waiting) -> None:
    waiting()
    mine = window(ada)
    page = mine.go("/")
    mine.context.route("**/live/**", lambda route: route.abort())
    expect(page.locator("#stale")).to_have_text(
        re.compile(r"Not updated since \d\d:\d\d:\d\d UTC"), timeout=4000
    )
    mine.context.unroute("**/live/**")
    expect(page.locator("#stale")).to_be_hidden(timeout=4000)


def test_a_session_that_ended_leads_to_the_login_and_approves_nothing(
    window: Open, ada: User, waiting: Waiting
) -> None:
    decision = waiting()
    mine = window(ada)
    page = mine.go("/?group=node")
    mine.context.route("**/live/**", lambda route: route.abort())
    csrf = [cookie for cookie in mine.context.cookies() if cookie.get("name") == "deschedui-csrf"]
    mine.context.clear_cookies()
    mine.context.add_cookies(csrf)  # type: ignore[arg-type]
    page.get_by_role("button", name=re.compile("^Approve: ")).click()
    page.wait_for_url("**/login?next=%2F%3Fgroup%3Dnode")
    assert verdict_of(decision) == Verdict.PENDING


def test_keys_can_be_switched_off(window: Open, ada: User, waiting: Waiting) -> None:
    decision = waiting()
    page = window(ada).go("/settings/")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.get_by_role("button", name="Keep").click()
    page.wait_for_url("**/settings/#me")
    page.goto(page.url.split("/settings")[0] + "/")
    page.wait_for_selector("html.js")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_timeout(300)
    assert verdict_of(decision) == Verdict.PENDING


class TestOnAPhone:
    def test_a_card_has_its_two_buttons_under_the_thumb(
        self, window: Open, ada: User, waiting: Waiting
    ) -> None:
        decision = waiting(pod_name="checkout-payment-authorisation-7d9c6b5f4d-" + "x" * 20)
        mine = window(ada, phone=True)
        page = mine.go("/")
        approve, deny = (
            page.locator("[data-approve]").bounding_box(),
            page.locator("[data-deny]").bounding_box(),
        )
        assert approve is not None
        assert deny is not None
        assert min(approve["height"], deny["height"]) >= 44
        assert approve["width"] > 140
        assert not mine.scrolls_sideways()
        page.locator("[data-approve]").click()
        expect(page.locator(f"#d-{decision.pk}")).to_contain_text("Approved by ada")


class TestWithoutJavaScript:
    def test_links_and_forms_do_all_of_it(self, window: Open, ada: User, waiting: Waiting) -> None:
        first, second = waiting(pod_name="web-1"), waiting(pod_name="web-2")
        page = window(ada, javascript=False).page
        page.goto(window(ada).server + "/")
        page.get_by_role("button", name="Approve: evict shop/web-1 from prod").click()
        expect(page.get_by_text("Approved: shop/web-1 in prod will be evicted.")).to_be_visible()
        page.get_by_role("button", name="Deny: keep shop/web-2 in prod").click()
        page.get_by_label("Why not evict web-2 in prod?").fill("not now")
        page.get_by_role("button", name="Deny", exact=True).click()
        assert verdict_of(first) == Verdict.ALLOWED
        assert verdict_of(second) == Verdict.DENIED

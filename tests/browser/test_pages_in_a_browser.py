"""Every page in both themes and both widths: nothing for axe, nothing sideways, nothing that the CSP stops."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from decisions.models import Cluster, Cycle, CycleKind, CycleState, Decision, Freeze, PolicyVersion, Verdict
from decisions.services import timeline
from tests.browser.conftest import Open
from tests.builders import FORECAST

pytestmark = [pytest.mark.browser, pytest.mark.real]
PAGES = [
    "/",
    "/?group=node",
    "/history/",
    "/cycles/",
    "/cycles/{cycle}/",
    "/policy/",
    "/extenders/",
    "/settings/",
    "/d/{decision}/",
    "/d/{decision}/deny",
    "/d/{denied}/",
]
POLICY = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    pluginConfig:
      - name: ExternalDecision
        args:
          extender: {urlPrefix: "https://gate.svc:8443", decisionVerb: evict, ignorable: true, httpTimeout: 2s}
      - name: PodLifeTime
        args: {maxPodLifeTimeSeconds: 86400}
    plugins:
      deschedule: {enabled: [PodLifeTime]}
      preevictionfilter: {enabled: [ExternalDecision]}
"""
TIMEOUT = {
    "effect": "allow",
    "decided_by": "ignorable",
    "failure_mode": "timeout",
    "reason": "",
    "detail": "limit 2s",
    "http_status": None,
    "latency_ms": 2001.0,
    "url": "https://gate.svc:8443/evict",
    "fail_policy": "Deny",
    "ignorable": True,
}


@pytest.fixture
def world(prod: Cluster, waiting: Callable[..., Decision]) -> dict[str, int]:
    """A cluster in which something of everything is to be seen."""
    now = timezone.now()
    policy = PolicyVersion.objects.create(
        cluster=prod,
        number=1,
        text=POLICY,
        digest="0" * 64,
        valid=True,
        source="file policy.yaml",
        created_at=now,
        warnings=[
            {
                "message": "ignorable is true",
                "path": "profiles[0]",
                "line": 8,
                "column": 1,
                "hint": "",
                "upstream": "",
            }
        ],
    )
    cycle = Cycle.objects.create(
        cluster=prod,
        policy=policy,
        kind=CycleKind.SCHEDULED,
        state=CycleState.COMPLETED,
        started_at=now,
        finished_at=now,
        deadline_at=now,
        heartbeat_at=now,
        counts={"pods": 150, "eligible": 60, "nominated": 4},
        steps=[{"name": "list", "seconds": 0.4, "detail": "150 pods"}],
        warnings=["Policy: mind"],
        limits=[{"kind": "node", "name": "n1", "limit": 2, "heldBack": 3, "filledBy": [1]}],
    )
    bad = {**FORECAST, "fits_on": [], "missing": {"n2": "has 200m cpu free, the pod requests 2"}}
    decision = waiting(
        pod_name="checkout-payment-authorisation-7d9c6b5f4d-kdpx9-and-longer",
        forecast=bad,
        policy=policy,
        cycle=cycle,
        extenders=[TIMEOUT],
        extender_effect="allow",
        extender_decided_by="ignorable",
        failure_mode="timeout",
        unanswered=1,
    )
    timeline.append(decision.pk, "asked", at=now, reason="x" * 300, detail={"asker": "our policy"})
    waiting(pod_uid=decision.pod_uid, asker="caller:9", asker_name="nightly", executor="asker")
    ago = now - timedelta(hours=3)
    denied = waiting(
        verdict=Verdict.DENIED,
        rule="human",
        decided_by_name="Bo",
        decision_reason="incident",
        created_at=ago,
        expires_at=None,
        decided_at=ago,
    )
    waiting(
        verdict=Verdict.ALLOWED,
        rule="human",
        decided_by_name="Bo",
        eviction="blocked",
        pdb="web",
        decided_at=ago,
    )
    waiting(
        verdict=Verdict.ALLOWED,
        rule="human",
        decided_by_name="Bo",
        eviction="failed",
        cause="rbac",
        message="the cluster does not let us",
        decided_at=ago,
    )
    Freeze.objects.create(cluster=prod, reason="INC-4411", set_at=now, set_by="root")
    return {"decision": decision.pk, "denied": denied.pk, "cycle": cycle.pk}


def serious(page: Any) -> list[str]:
    """What axe finds, with the elements."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes'][:3]]}" for each in found]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_and_the_csp_stops_nothing(
    window: Open, admin: User, world: dict[str, int], dark: bool
) -> None:
    mine = window(admin, dark=dark)
    faults = {}
    for path in PAGES:
        page = mine.go(path.format(**world))
        if found := serious(page):
            faults[path] = found
    assert faults == {}
    assert mine.complaints == []


def test_axe_finds_nothing_at_the_login(window: Open, admin: User, world: dict[str, int]) -> None:
    mine = window(admin)
    mine.context.clear_cookies()
    mine.page.goto(mine.server + "/login")
    assert serious(mine.page) == []


def test_nothing_scrolls_sideways_on_a_phone(window: Open, admin: User, world: dict[str, int]) -> None:
    mine = window(admin, phone=True)
    wide = []
    for path in PAGES:
        mine.go(path.format(**world))
        if mine.scrolls_sideways():
            wide.append(path)
    assert wide == []


def test_axe_finds_nothing_on_a_phone(window: Open, admin: User, world: dict[str, int]) -> None:
    mine = window(admin, phone=True, dark=True)
    assert serious(mine.go("/")) == []


def test_axe_finds_nothing_in_an_unfolded_row_and_in_the_confirmation(
    window: Open, admin: User, world: dict[str, int]
) -> None:
    page = window(admin).go("/")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="If you say yes")).to_be_visible()
    page.keyboard.press("x")
    page.get_by_role("button", name="Deny…", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Deny 1 decision?")
    assert serious(page) == []


def test_a_click_on_a_bar_narrows_the_time(window: Open, admin: User, world: dict[str, int]) -> None:
    page = window(admin).go("/history/")
    page.locator(".strip a").last.click()
    page.wait_for_url("**since=**")
    expect(page.locator(".filters")).to_contain_text("since")


def test_slash_searches_the_history(window: Open, admin: User, world: dict[str, int]) -> None:
    page = window(admin).go("/")
    page.keyboard.press("/")
    page.keyboard.type("checkout")
    page.keyboard.press("Enter")
    page.wait_for_url("**/history/?q=checkout**")
    expect(page.locator("table.history")).to_contain_text("kdpx9")


def test_a_cycle_that_runs_says_how_far_it_is(window: Open, admin: User, world: dict[str, int]) -> None:
    now = timezone.now()
    Cycle.objects.filter(pk=world["cycle"]).update(
        state=CycleState.RUNNING,
        step="list",
        progress="40 pods",
        finished_at=None,
        deadline_at=now + timedelta(minutes=9),
    )
    page = window(admin).go(f"/cycles/{world['cycle']}/")
    expect(page.locator(".running")).to_contain_text("list 40 pods")
    Cycle.objects.filter(pk=world["cycle"]).update(
        progress="90 pods", heartbeat_at=now + timedelta(seconds=3)
    )
    expect(page.locator(".running")).to_contain_text("90 pods", timeout=2500)
    Cycle.objects.filter(pk=world["cycle"]).update(state=CycleState.COMPLETED, finished_at=now)
    expect(page.locator("#cycle h1 + span")).to_contain_text("completed", timeout=2500)


def test_the_decisions_page_follows_what_happens(window: Open, admin: User, world: dict[str, int]) -> None:
    page = window(admin).go(f"/d/{world['decision']}/")
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.locator("#decision")).to_contain_text("Approved by root")
    expect(page.locator("#timeline")).to_contain_text("Approved by root", timeout=2500)


def test_times_are_absolute_on_hover_and_on_focus(window: Open, admin: User, world: dict[str, int]) -> None:
    page = window(admin).go(f"/d/{world['decision']}/")
    page.locator("#timeline time").first.focus()
    shown = page.evaluate("getComputedStyle(document.querySelector('#timeline time'), '::after').content")
    assert "UTC" in shown

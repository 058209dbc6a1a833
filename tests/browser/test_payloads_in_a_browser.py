"""Every page full of hostile text, in a real browser: nothing runs, nothing leaves, nothing hides, nothing spills."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Dialog, Page, expect

from decisions.models import Cluster, Cycle, Decision
from tests.browser.conftest import Open, Window
from tests.payloads import PAYLOADS, fill

pytestmark = [pytest.mark.browser, pytest.mark.real]

# Runs before anything of the page: whoever calls pwned() has run a script, and what the policy stops is written down.
WATCH = """
window.found = [];
window.pwned = () => window.found.push("a script ran");
document.addEventListener("securitypolicyviolation", (event) => {
  window.found.push(`the policy stopped ${event.violatedDirective} ${event.blockedURI}`);
});
"""
LOOK = r"""
() => {
  const found = [...window.found];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const told = (each) => each.outerHTML.slice(0, 120);
  const foreign = "[data-pwn], iframe, object, embed, base, form[action*='evil']";
  found.push(...all(foreign).map((each) => `injected: ${told(each)}`));
  for (const each of all("*")) {
    for (const { name } of each.attributes) {
      if (name.startsWith("on") || name === "style" || name.startsWith("hx-on")) found.push(`${name}: ${told(each)}`);
    }
  }
  for (const each of all("a[href], area[href]")) {
    if (each.closest("svg")) continue;
    const closed = /^https?:$/.test(each.protocol) && each.rel === "noopener noreferrer";
    if (each.origin !== location.origin && !closed) found.push(`link: ${told(each)}`);
    if (each.username) found.push(`a user in a link: ${told(each)}`);
  }
  const written = document.documentElement.outerHTML + document.title;
  const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029\u034f\u3164]/u.exec(written);
  if (hidden) found.push(`shown raw: U+${hidden[0].codePointAt(0).toString(16)}`);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const beyond = (each) => each.getBoundingClientRect().right > page.clientWidth + 1;
    const wide = all("main *, header *").find((each) => beyond(each) && !each.closest("pre, .lines, svg"));
    found.push(`wider than the window: ${page.scrollWidth} of ${page.clientWidth}: ${wide ? told(wide) : "?"}`);
  }
  return found;
}
"""


@pytest.fixture
def world(prod: Cluster, admin: User) -> list[Decision]:
    """Every payload in every field."""
    admin.first_name, admin.last_name = PAYLOADS["attribute"][:140], PAYLOADS["bidi"]
    admin.save()
    return fill(prod, admin, timezone.now())


def watched(window: Window) -> Window:
    """A window that notices what a payload would do."""

    def noticed(dialog: Dialog) -> None:
        window.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    window.context.add_init_script(WATCH)
    window.page.on("dialog", noticed)
    return window


def faults(window: Window, path: str) -> list[str]:
    """What went wrong on a page, each with its address."""
    window.go(path)
    return [f"{path}: {each}" for each in window.page.evaluate(LOOK)]


def assert_quiet(window: Window) -> None:
    """No complaint of the browser, and no request to anybody but us."""
    assert window.complaints == []
    assert [url for url in window.requests if not url.startswith(window.server)] == []


def paths() -> list[str]:
    """The pages that show many at once."""
    cycle = Cycle.objects.latest("pk").pk
    shown = [f"/cycles/{cycle}/?show={each}" for each in ("filtered", "nominated")]
    queries = [
        f"/history/?q={each}" for each in ("%22%3E%3Cb%20data-pwn%3E", "%E2%80%AEabc", "javascript:pwned()")
    ]
    lists = ["/", "/?group=node", "/?group=cycle&q=%22%20data-pwn%20x=%22", "/history/", *queries, "/cycles/"]
    return [*lists, f"/cycles/{cycle}/", *shown, "/policy/", "/extenders/", "/settings/"]


def own_pages(world: list[Decision]) -> list[str]:
    """Each decision's page, and for a few the form that quotes it."""
    forms = [f"/d/{each.pk}/deny" for each in world[:1]] + [f"/d/{world[1].pk}/override"]
    return [*(f"/d/{each.pk}/" for each in world), *forms]


@pytest.mark.parametrize("phone", [True, False], ids=["phone", "desk"])
def test_no_page_does_more_than_show_it(
    window: Open, admin: User, world: list[Decision], phone: bool
) -> None:
    mine = watched(window(admin, phone=phone))
    assert [fault for path in paths() for fault in faults(mine, path)] == []
    assert_quiet(mine)


def test_no_decisions_own_page_does(window: Open, admin: User, world: list[Decision]) -> None:
    phone = watched(window(admin, phone=True, dark=True))
    assert [fault for path in own_pages(world) for fault in faults(phone, path)] == []
    assert_quiet(phone)


def waits(world: list[Decision], name: str) -> Decision:
    """The decision with a payload, waiting."""
    row = world[list(PAYLOADS).index(name)]
    Decision.objects.filter(pk=row.pk).update(verdict="pending", eviction="none", rule="none")
    return row


def reason_on(page: Page) -> Any:
    return page.locator("section[aria-labelledby=why-h] > p").first


def test_what_is_hidden_is_seen_and_what_is_a_link_can_be_followed(
    window: Open, admin: User, world: list[Decision]
) -> None:
    """An escape with its name, a template that is none, and a ticket in a reason, which learns nothing of us."""
    mine = window(admin)
    page = mine.go(f"/d/{waits(world, 'bidi').pk}/")
    escape = reason_on(page).locator(".esc").first
    expect(escape).to_be_visible()
    expect(escape).to_have_text(r"\u202e")
    expect(escape).to_have_attribute("title", "U+202E RIGHT-TO-LEFT OVERRIDE")
    assert r"\u202e" in page.title()
    page = mine.go(f"/d/{waits(world, 'template').pk}/")
    expect(reason_on(page)).to_contain_text("{{7*7}}{% include 'base.html' %}")
    row = waits(world, "link")
    Decision.objects.filter(pk=row.pk).update(reason="see https://tickets.example/INC-1, javascript:pwned()")
    link = reason_on(mine.go(f"/d/{row.pk}/")).get_by_role("link")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", "https://tickets.example/INC-1")
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_fragments_bring_nothing_in(window: Open, admin: User, world: list[Decision]) -> None:
    for name in ("image", "script", "attribute", "htmx"):
        waits(world, name)
    mine = watched(window(admin))
    page = mine.go("/")
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="If you say yes").first).to_be_visible()
    page.locator("[data-all]").check()
    expect(page.locator("#summary")).to_contain_text("would be blocked")
    page.get_by_role("button", name="Deny…", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Deny")
    page.locator("dialog [data-reason]").first.click()
    page.locator("dialog .danger").click()
    expect(page.get_by_role("dialog")).to_contain_text("denied")
    assert page.evaluate(LOOK) == []
    # The bar may ask once more about a selection that has just been answered; htmx then says that it found none.
    mine.complaints = [each for each in mine.complaints if "hx-include" not in each]
    assert_quiet(mine)


def test_the_apis_own_page_runs_within_its_policy(window: Open, admin: User, prod: Cluster) -> None:
    mine = watched(window(admin))
    mine.page.goto(mine.server + "/api/docs/")
    expect(mine.page.locator(".opblock").first).to_be_visible()
    assert mine.page.evaluate("window.found") == []
    assert_quiet(mine)

"""The history: filters are the address, pages go by key, files are streamed."""

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from decisions.models import Cluster, Decision, Preference, Role, Verdict
from decisions.queries.history import PAGE, HistoryFilter
from tests.builders import make_user
from tests.web.conftest import Make, browser_of
from tests.web.pages import links_of, text_of

pytestmark = pytest.mark.django_db


def body_of(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def many(cluster: Cluster, number: int) -> None:
    now = timezone.now()
    Decision.objects.bulk_create(
        Decision(
            cluster=cluster,
            asker="policy",
            asker_name="our policy",
            executor="us",
            pod_uid=f"u{each}",
            namespace="shop",
            pod_name=f"web-{each}",
            verdict=Verdict.WITHDRAWN,
            nominated_at=now,
            updated_at=now,
            created_at=now - timedelta(seconds=each // 3),
        )
        for each in range(number)
    )


def test_it_says_when_which_pod_why_and_by_whom(as_viewer: Client, make: Make) -> None:
    make(
        verdict=Verdict.DENIED,
        rule="human",
        decided_by_name="Ada",
        decision_reason="release",
        expires_at=None,
    )
    page = text_of(as_viewer.get("/history/"))
    assert "web-5fc9-kdpx9" in page
    assert "denied Ada release" in page


def test_a_separator_for_each_day_of_the_persons_zone(viewer: Any, make: Make) -> None:
    Preference.objects.create(user=viewer, time_zone="Asia/Tokyo")
    make(created_at=timezone.datetime.fromisoformat("2026-11-29T20:00:00+00:00"))  # type: ignore[attr-defined]
    assert "Monday, 30 November 2026" in text_of(browser_of(viewer).get("/history/"))


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("verdict=denied", "denied-one"),
        ("node=n9", "other-node"),
        ("failure=timeout", "timed-out"),
        ("failure=any", "timed-out"),
        ("q=burning", "with-reason"),
        ("eviction=failed", "failed-one"),
    ],
)
def test_filters_show_what_they_say(as_viewer: Client, make: Make, query: str, seen: str) -> None:
    make(pod_name="plain")
    make(pod_name="denied-one", verdict=Verdict.DENIED)
    make(pod_name="other-node", node="n9")
    make(pod_name="timed-out", failure_mode="timeout")
    make(pod_name="with-reason", reason="the node is burning")
    make(pod_name="failed-one", verdict=Verdict.ALLOWED, eviction="failed")
    page = text_of(as_viewer.get(f"/history/?{query}"))
    assert seen in page
    assert "plain" not in page


def test_a_filter_is_a_chip_that_can_be_removed(as_viewer: Client, make: Make) -> None:
    links = links_of(as_viewer.get("/history/?node=n1&verdict=denied"))
    assert links["node n1 remove this filter"] == "?verdict=denied"


@pytest.mark.parametrize(
    "query", ["verdict=nonsense", "since=yesterday", "before=x", "before=2026_1", "before=_", "failure=x"]
)
def test_an_address_that_makes_no_sense_still_opens(as_viewer: Client, make: Make, query: str) -> None:
    make(pod_name="there")
    assert "there" in text_of(as_viewer.get(f"/history/?{query}"))


def test_every_decision_is_on_exactly_one_page(as_viewer: Client, cluster: Cluster) -> None:
    many(cluster, PAGE * 2 + 7)
    seen: list[str] = []
    address = "/history/"
    for _ in range(5):
        page = as_viewer.get(address)
        seen += [row.pod_name for _, rows in page.context["days"] for row in rows]
        if not page.context["older"]:
            break
        address = f"/history/?before={page.context['older']}"
    assert len(seen) == len(set(seen)) == PAGE * 2 + 7


def test_a_page_counts_nothing_and_skips_nothing(as_viewer: Client, cluster: Cluster) -> None:
    many(cluster, PAGE + 5)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        as_viewer.get("/history/")
    listing = [each["sql"] for each in queries if "LIMIT" in each["sql"] and "created_at" in each["sql"]]
    assert not any("OFFSET" in sql for sql in listing)
    assert len(queries) <= 14


def test_what_is_not_mine_is_not_in_the_history_nor_in_the_file(make: Make) -> None:
    make(namespace="bank", pod_name="secret")
    nina = browser_of(make_user("nina", Role.VIEWER, namespaces=["shop"]))
    assert "secret" not in text_of(nina.get("/history/"))
    assert "secret" not in body_of(nina.get("/history/decisions.csv"))


def test_the_csv_holds_what_the_filter_shows(as_viewer: Client, make: Make) -> None:
    make(pod_name="yes", verdict=Verdict.DENIED)
    make(pod_name="no")
    rows = list(csv.DictReader(io.StringIO(body_of(as_viewer.get("/history/decisions.csv?verdict=denied")))))
    assert [row["pod_name"] for row in rows] == ["yes"]


def test_no_cell_of_the_csv_is_a_formula(as_viewer: Client, make: Make) -> None:
    make(reason='=HYPERLINK("https://evil.example")')
    rows = list(csv.DictReader(io.StringIO(body_of(as_viewer.get("/history/decisions.csv")))))
    assert rows[0]["reason"].startswith("'=")


def test_the_json_is_one_array_also_when_it_is_empty(as_viewer: Client, cluster: Cluster) -> None:
    assert json.loads(body_of(as_viewer.get("/history/decisions.json"))) == []


def test_a_file_holds_more_than_one_chunk(as_viewer: Client, cluster: Cluster) -> None:
    many(cluster, 1203)
    assert len(json.loads(body_of(as_viewer.get("/history/decisions.json")))) == 1203


def test_other_kinds_of_files_do_not_exist(as_viewer: Client, cluster: Cluster) -> None:
    assert as_viewer.get("/history/decisions.exe").status_code == 404


def test_the_bars_have_a_text_alternative(as_viewer: Client, make: Make) -> None:
    make(verdict=Verdict.DENIED)
    make()
    page = as_viewer.get("/history/").content.decode()
    assert "2 decisions by day: 0 allowed, 1 denied, 1 pending, 0 other." in page


def test_a_day_narrows_to_hours(as_viewer: Client, make: Make) -> None:
    make()
    since = (timezone.now() - timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "1 decision by hour" in as_viewer.get(f"/history/?since={since}").content.decode()


def test_a_filters_address_round_trips() -> None:
    chosen = HistoryFilter.of({"q": "web & co", "verdict": "denied", "since": "2026-11-30T00:00:00Z"})
    assert chosen.query() == "q=web+%26+co&verdict=denied&since=2026-11-30T00%3A00%3A00Z"

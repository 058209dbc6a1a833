"""A filter that no index answers looks only so far back for a page, and the next page goes on from there."""

from django.contrib.auth.models import User

from decisions.models import Cluster, Eviction, Verdict
from decisions.queries import history
from decisions.queries.access import Access
from decisions.queries.history import HistoryFilter, Page
from tests.builders import at, make_decision


def decided(cluster: Cluster, number: int, **fields: object) -> int:
    """The id of a decision made ``number`` minutes ago."""
    fields = {"verdict": Verdict.WITHDRAWN, "created_at": at(-60 * number), **fields}
    return make_decision(cluster, **fields).pk


def look(user: User, before: str = "", **chosen: str) -> Page:
    """A page that looks at five decisions."""
    return history.page(Access.of(user), HistoryFilter(**chosen), before, looked_at=5)


def test_a_rare_text_is_found_on_the_page_that_reaches_it(cluster: Cluster, viewer: User) -> None:
    wanted = decided(cluster, 8, pod_name="needle")
    for number in range(8):
        decided(cluster, number)
    first = look(viewer, q="needle")
    second = look(viewer, first.older, q="needle")
    assert (first.rows, first.searched_to) == ([], at(-60 * 5))
    assert [row.pk for row in second.rows] == [wanted]
    assert (second.older, second.searched_to) == ("", None)


def test_decisions_of_one_moment_are_shown_once(cluster: Cluster, viewer: User) -> None:
    rows = [decided(cluster, 0, node="n7") for _ in range(12)]
    pages = [look(viewer, node="n7")]
    while pages[-1].older:
        pages.append(look(viewer, pages[-1].older, node="n7"))
    assert [row.pk for page in pages for row in page.rows] == sorted(rows, reverse=True)


def test_a_filter_with_an_index_looks_as_far_as_it_has_to(cluster: Cluster, viewer: User) -> None:
    failed = decided(cluster, 9, verdict=Verdict.ALLOWED, eviction=Eviction.FAILED, namespace="pay")
    for number in range(9):
        decided(cluster, number)
    for chosen in ({"namespace": "pay"}, {"eviction": "failed"}, {"verdict": "allowed"}):
        assert [row.pk for row in look(viewer, **chosen).rows] == [failed]


def test_a_cluster_that_does_not_exist_has_no_history(cluster: Cluster, viewer: User) -> None:
    decided(cluster, 1)
    assert look(viewer, cluster="elsewhere").rows == []

"""The document of a cycle keeps its bounds and still counts everything."""

from decisions.models import documents
from decisions.models.documents import Nominated
from deschedui.descheduler.evictor import Objection
from deschedui.descheduler.results import FilteredOut


def filtered(name: str = "web-1", **fields: object) -> FilteredOut:
    made = {
        "uid": name, "namespace": "shop", "name": name, "node": "n1", "profile": "default",
        "plugin": "DefaultEvictor", "check": "bare", "reason": "has no owner",
    }  # fmt: skip
    return FilteredOut(**{**made, **fields})  # type: ignore[arg-type]


def nominated(name: str = "web-1", state: str = "waiting") -> Nominated:
    return Nominated(
        uid=name,
        namespace="shop",
        name=name,
        node="n1",
        profile="default",
        plugin="P",
        reason="old",
        state=state,
    )


def test_what_was_packed_is_unpacked() -> None:
    made = documents.build([filtered(more=(Objection("mirror", "is a mirror pod", ""),))], [nominated()])
    assert documents.unpack(documents.pack(made)) == made
    assert made.sentences == ["has no owner", "is a mirror pod"]


def test_nothing_stored_is_an_empty_document() -> None:
    assert documents.unpack(b"") == documents.Document()


def test_a_sentence_is_kept_once() -> None:
    made = documents.build([filtered(str(number)) for number in range(100)], [])
    assert len(made.sentences) == 1


def test_reasons_are_counted_by_namespace_the_most_frequent_first() -> None:
    pods = [filtered("a"), filtered("b", namespace="bank"), filtered("c"), filtered("d", check="mirror")]
    reasons = documents.build(pods, []).reasons
    assert [(reason.check, reason.by_namespace) for reason in reasons] == [
        ("bare", {"shop": 2, "bank": 1}),
        ("mirror", {"shop": 1}),
    ]


def test_what_is_beyond_the_bounds_is_counted() -> None:
    more = documents.MAX_FILTERED + 5
    made = documents.build((filtered(str(number)) for number in range(more)), [])
    assert (len(made.filtered), made.left_out, made.reasons[0].by_namespace) == (more - 5, 5, {"shop": more})


def test_nominations_beyond_the_bounds_are_counted_by_their_state() -> None:
    more = documents.MAX_NOMINATIONS + 5
    made = documents.build([], (nominated(str(number), "held_back") for number in range(more)))
    assert (len(made.nominations), made.states) == (more - 5, {"held_back": {"shop": more}})


def test_50_000_pods_are_a_small_document() -> None:
    made = documents.build((filtered(f"web-{number}", uid=f"{number:036}") for number in range(50_000)), [])
    assert len(documents.pack(made)) < 1_500_000

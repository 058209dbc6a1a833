"""Taints and tolerations, numeric operators included."""

from __future__ import annotations

import pytest

from deschedui.descheduler.objects import Taint, Toleration
from deschedui.descheduler.taints import show_all, tolerates, untolerated

GPU = Taint(key="dedicated", value="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="dedicated", value="gpu", effect="NoSchedule"), True),
        (Toleration(key="dedicated", operator="Equal", value="gpu"), True),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(value="gpu"), True),  # an empty key compares values alone, whatever the taint's key
        (Toleration(key="dedicated", value="cpu"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="dedicated", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="dedicated", operator="Like", value="gpu"), False),
    ],
)
def test_a_toleration_matches_by_effect_key_and_value(toleration: Toleration, *, tolerated: bool) -> None:
    assert tolerates(toleration, GPU) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "have", "tolerated"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "-3", True),
        ("Gt", "5", "06", False),
        ("Gt", "5", "+6", False),
        ("Lt", "5", "-0", False),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "", "6", False),
    ],
)
def test_numbers_are_compared_only_in_their_canonical_form(
    operator: str, bound: str, have: str, *, tolerated: bool
) -> None:
    taint = Taint(key="score", value=have, effect="NoSchedule")
    assert tolerates(Toleration(key="score", operator=operator, value=bound), taint) is tolerated


def test_taints_that_only_prefer_do_not_count() -> None:
    assert untolerated((), [Taint(key="a", effect="PreferNoSchedule"), GPU]) == (GPU,)


def test_taints_are_shown_as_kubectl_writes_them() -> None:
    assert show_all([GPU, Taint(key="a", effect="NoSchedule")]) == (
        "taints dedicated=gpu:NoSchedule, a:NoSchedule"
    )

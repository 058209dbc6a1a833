"""Objects are decoded from what an API server sends, and nothing more of it is kept."""

from __future__ import annotations

import msgspec
import pytest

from deschedui.descheduler.objects import Pod, PodList, decode, encode, from_builtins, to_builtins
from tests.engine.builders import build_pod, pod_manifest


def test_unknown_fields_are_skipped() -> None:
    pod = decode(b'{"metadata": {"name": "a", "managedFields": [{}]}, "spec": {"dnsPolicy": "x"}}', Pod)
    assert to_builtins(pod) == {"metadata": {"name": "a"}, "spec": {}}


def test_nulls_count_as_absent() -> None:
    page = decode(b'{"metadata": {"continue": "next"}, "items": null}', PodList)
    assert (page.metadata.continue_, page.items) == ("next", [])


def test_times_are_aware() -> None:
    created = build_pod().metadata.creation_timestamp
    assert created is not None
    assert created.utcoffset() is not None


def test_a_pod_survives_the_way_to_json_and_back() -> None:
    pod = build_pod(tolerations=[{"key": "a", "operator": "Exists"}], priority=5)
    assert decode(encode(pod), Pod) == pod


def test_a_manifest_and_its_json_give_the_same_pod() -> None:
    manifest = pod_manifest()
    assert from_builtins(manifest, Pod) == decode(msgspec.json.encode(manifest), Pod)


def test_an_object_of_the_wrong_shape_says_where() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.metadata\.name"):
        decode(b'{"metadata": {"name": 5}}', Pod)


def test_an_object_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        build_pod().metadata = None  # type: ignore[assignment, misc]

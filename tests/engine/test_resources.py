"""What a pod requests, init containers, sidecars and overhead included."""

from __future__ import annotations

from typing import Any

from deschedui.descheduler.quantities import milli
from deschedui.descheduler.resources import pod_requests
from tests.engine.builders import build_pod


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def cpu_of(**spec: Any) -> int:
    return milli(pod_requests(build_pod(spec=spec)).get("cpu", 0))


def test_containers_add_up() -> None:
    assert cpu_of(containers=[container("100m"), container("250m")]) == 350


def test_a_hungry_init_container_sets_the_level() -> None:
    assert cpu_of(containers=[container("100m")], initContainers=[container("1")]) == 1000


def test_an_init_container_runs_beside_the_sidecars_before_it() -> None:
    sidecar = container("200m", restartPolicy="Always")
    assert cpu_of(containers=[container("100m")], initContainers=[sidecar, container("1")]) == 1200


def test_a_sidecar_runs_beside_the_containers() -> None:
    sidecar = container("200m", restartPolicy="Always")
    assert cpu_of(containers=[container("100m")], initContainers=[sidecar]) == 300


def test_pod_level_requests_replace_what_was_added_up() -> None:
    assert cpu_of(containers=[container("100m")], resources={"requests": {"cpu": "2"}}) == 2000


def test_overhead_comes_on_top() -> None:
    assert cpu_of(containers=[container("100m")], overhead={"cpu": "50m", "memory": "1Mi"}) == 150


def test_limits_are_no_requests() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    assert cpu_of(containers=[limited]) == 0


def test_a_quantity_that_cannot_be_read_counts_as_none() -> None:
    assert cpu_of(containers=[container("lots")]) == 0

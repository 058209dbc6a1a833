"""What the demo's controllers do, step by step, without a server."""

import pytest

from deschedui.demo.apiserver.errors import ApiError
from deschedui.demo.apiserver.resources import DAEMON_SETS, EVENTS, JOBS, NODES, PODS, STATEFUL_SETS
from deschedui.demo.controller import MAINTENANCE, TAINT
from deschedui.demo.kubelets import CRASH_ANNOTATION, Pace
from deschedui.demo.workloads import AGE_ANNOTATION
from tests.demo.cluster import Cluster, workload


def test_an_evicted_pod_is_replaced_on_a_node_that_takes_it() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", 2)
    cluster.pass_time()
    gone = cluster.ready()[0]
    cluster.evict(gone)
    cluster.pass_time(1)
    assert gone not in cluster.ready()
    assert len(cluster.ready()) == 2


def test_a_pod_takes_its_time_to_start_and_to_get_ready() -> None:
    cluster = Cluster(pace=Pace(start=5, ready=10))
    cluster.node("a")
    cluster.deployment("cart")
    cluster.pass_time()
    assert cluster.pods()[0]["status"]["phase"] == "Pending"
    cluster.pass_time(5)
    assert cluster.pods()[0]["status"]["phase"] == "Running"
    assert cluster.ready() == []
    cluster.pass_time(10)
    assert len(cluster.ready()) == 1


def test_an_evicted_pod_takes_its_time_to_end() -> None:
    cluster = Cluster(pace=Pace(start=0, ready=0, stop=4))
    cluster.node("a")
    cluster.deployment("cart")
    cluster.pass_time()
    name = cluster.ready()[0]
    cluster.evict(name)
    cluster.pass_time(3)
    assert name in [p["metadata"]["name"] for p in cluster.pods()]
    cluster.pass_time(1)
    assert name not in [p["metadata"]["name"] for p in cluster.pods()]


def test_pods_of_one_owner_are_spread_over_zones() -> None:
    cluster = Cluster()
    for zone in ("x", "y", "z"):
        for number in (1, 2):
            cluster.node(f"{zone}{number}", labels={"topology.kubernetes.io/zone": zone})
    cluster.deployment("cart", 3)
    cluster.pass_time()
    assert {p["spec"]["nodeName"][0] for p in cluster.pods()} == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("taints", "cpu", "pod", "why"),
    [
        ([TAINT], "4", {}, "node(s) had untolerated taint(s)"),
        ([], "500m", {}, "Insufficient cpu"),
        ([], "4", {"nodeSelector": {"disk": "ssd"}}, "node(s) didn't match Pod's node affinity/selector"),
    ],
)
def test_a_pod_that_no_node_takes_says_why(
    taints: list[dict[str, str]], cpu: str, pod: dict[str, object], why: str
) -> None:
    cluster = Cluster()
    cluster.node("a", taints=taints, cpu=cpu)
    cluster.deployment("cart", pod=pod)
    cluster.pass_time()
    condition = cluster.pods()[0]["status"]["conditions"][0]
    assert condition["message"] == f"0/1 nodes are available: 1 {why}."


def test_a_toleration_opens_a_tainted_node() -> None:
    cluster = Cluster()
    cluster.node("a", taints=[TAINT])
    cluster.deployment("cart", pod={"tolerations": [{"key": "maintenance", "operator": "Exists"}]})
    cluster.pass_time()
    assert len(cluster.ready()) == 1


def test_a_stateful_set_starts_one_after_the_other() -> None:
    cluster = Cluster(pace=Pace(start=1, ready=1))
    cluster.node("a")
    cluster.add(
        STATEFUL_SETS,
        {"metadata": {"name": "db"}, "spec": workload("db", {"labels": {"app": "db"}}, replicas=2)},
    )
    cluster.pass_time()
    assert [p["metadata"]["name"] for p in cluster.pods()] == ["db-0"]
    for _ in range(4):
        cluster.pass_time(1)
    assert cluster.ready() == ["db-0", "db-1"]


def test_a_stateful_sets_pod_keeps_its_volume() -> None:
    cluster = Cluster()
    cluster.node("a")
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    spec = workload("db", {"labels": {"app": "db"}}, replicas=1, volumeClaimTemplates=claims)
    cluster.add(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec})
    cluster.pass_time()
    cluster.evict("db-0")
    cluster.pass_time(1)
    volume = cluster.pods()[0]["spec"]["volumes"][0]
    assert volume["persistentVolumeClaim"] == {"claimName": "data-db-0"}


def test_a_daemon_set_is_on_each_node_that_it_tolerates() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b", taints=[TAINT])
    cluster.node("c")
    cluster.add(
        DAEMON_SETS, {"metadata": {"name": "agent"}, "spec": workload("agent", {"labels": {"app": "agent"}})}
    )
    cluster.pass_time()
    assert {p["spec"]["nodeName"] for p in cluster.pods()} == {"a", "c"}


def test_a_job_ends_when_its_work_is_done() -> None:
    cluster = Cluster(pace=Pace(start=0, ready=0, work=60))
    cluster.node("a")
    spec = workload("report", {"labels": {"app": "report"}}, pod={"restartPolicy": "Never"})
    cluster.add(JOBS, {"metadata": {"name": "report"}, "spec": spec})
    cluster.pass_time()
    cluster.pass_time(60)
    job = cluster.store.get(JOBS, "shop/report")
    assert job is not None
    assert (job.obj["status"]["succeeded"], job.obj["status"]["conditions"][0]["type"]) == (1, "Complete")
    assert len(cluster.pods()) == 1


def test_a_crashing_pod_restarts_again_and_again() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", annotations={CRASH_ANNOTATION: "60"})
    cluster.pass_time()
    cluster.pass_time(150)
    status = cluster.pods()[0]["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["state"]["waiting"]["reason"]) == (3, "CrashLoopBackOff")
    assert cluster.ready() == []


def test_a_pod_may_claim_to_be_old() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", annotations={AGE_ANNOTATION: "86400"})
    cluster.pass_time()
    assert cluster.pods()[0]["metadata"]["creationTimestamp"] == "2026-11-29T12:00:00Z"


def test_a_changed_template_replaces_the_pods() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", 2)
    cluster.pass_time()
    before = set(cluster.ready())
    cluster.deployment("cart", 2, annotations={"version": "2"})
    cluster.pass_time()
    assert len(cluster.ready()) == 2
    assert not before & set(cluster.ready())


def test_a_cordoned_node_is_tainted_until_it_is_free_again() -> None:
    cluster = Cluster()
    cluster.node("a")
    node = next(cluster.store.all(NODES))
    cluster.store.put(NODES, node | {"spec": {"unschedulable": True}})
    cluster.pass_time()
    assert next(cluster.store.all(NODES))["spec"]["taints"][0]["key"] == "node.kubernetes.io/unschedulable"
    cluster.store.put(NODES, next(cluster.store.all(NODES)) | {"spec": {}})
    cluster.pass_time()
    assert next(cluster.store.all(NODES))["spec"] == {}


def test_events_are_kept_for_an_hour() -> None:
    cluster = Cluster()
    involved = {"kind": "Pod", "namespace": "shop", "name": "cart"}
    cluster.add(EVENTS, {"metadata": {"name": "e"}, "involvedObject": involved})
    cluster.pass_time(3600)
    assert len(list(cluster.store.all(EVENTS))) == 1
    cluster.pass_time(61)
    assert list(cluster.store.all(EVENTS)) == []


def test_the_maintenance_taint_moves_on() -> None:
    cluster = Cluster(drama=True)
    for name in ("a", "b"):
        cluster.node(name, labels={"pool": "general"})
    cluster.pass_time()
    first = {n["metadata"]["name"] for n in cluster.store.all(NODES) if n["spec"].get("taints")}
    cluster.pass_time(MAINTENANCE.total_seconds())
    second = {n["metadata"]["name"] for n in cluster.store.all(NODES) if n["spec"].get("taints")}
    assert (first, second) == ({"a"}, {"b"})


@pytest.mark.parametrize(
    ("terms", "allowed"),
    [
        ({"minAvailable": 1}, 2),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "34%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 5}, 0),
    ],
)
def test_a_budget_allows_what_is_over(terms: dict[str, object], allowed: int) -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", 3)
    cluster.budget("cart", **terms)
    cluster.pass_time()
    assert cluster.allowed("cart") == allowed


def test_a_budget_lets_go_again_when_the_replacement_is_ready() -> None:
    cluster = Cluster(pace=Pace(start=1, ready=1, stop=0))
    cluster.node("a")
    cluster.deployment("cart", 2)
    cluster.budget("cart", maxUnavailable=1)
    for _ in range(3):
        cluster.pass_time(1)
    cluster.evict(cluster.ready()[0])
    with pytest.raises(ApiError):
        cluster.evict(cluster.ready()[0])
    for _ in range(3):
        cluster.pass_time(1)
    assert cluster.allowed("cart") == 1


def test_an_eviction_that_came_to_nothing_is_forgotten_after_two_minutes() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.deployment("cart", 2)
    cluster.budget("cart", maxUnavailable=1)
    cluster.pass_time()
    cluster.evict(cluster.ready()[0])
    for pod in cluster.pods():  # as if the deletion had failed after the budget was asked
        kept = {k: v for k, v in pod["metadata"].items() if not k.startswith("deletion")}
        cluster.store.put(PODS, pod | {"metadata": kept})
    cluster.pass_time()
    assert cluster.allowed("cart") == 0
    cluster.pass_time(121)
    assert cluster.allowed("cart") == 1

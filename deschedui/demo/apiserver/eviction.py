"""`pods/eviction` and `pods/binding`, as kube-apiserver 1.37 does them (its `pkg/registry/core/pod/storage`)."""

from typing import Any

from . import errors
from .admission import rfc3339
from .calls import Call, Reply, read_object
from .reading import found
from .resources import BUDGETS, PODS
from .selectors import object_selector
from .store import Json, Store, Stored
from .writing import check_preconditions, delete_object

MAX_DISRUPTED_PODS = 2000
UNPROCESSED_RETRY_SECONDS = 10


def evict(store: Store, call: Call) -> Reply:
    """Delete a pod if its disruption budget lets it go. Raises 404, 409, 429 and the server's other refusals."""
    eviction = read_object(call, "Eviction", "policy/v1")
    dry_query = call.dry_run()
    if eviction["metadata"].get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options, dry = _options(eviction, dry_query=dry_query)
    pod = found(store, call)
    if not _ignores_budgets(pod.obj):
        _ask_budget(store, pod.obj, dry=dry)
    if not dry:
        pod = _mark_target(store, pod, options)
        options = _without_version(options)
    delete_object(store, PODS, pod, options, dry=dry)
    return Reply.of(201, errors.success(201))


def _options(eviction: Json, *, dry_query: bool) -> tuple[Json, bool]:
    options: Json = dict(eviction.get("deleteOptions") or {})
    told = options.get("dryRun") or []
    if told and dry_query and told != ["All"]:
        raise errors.ApiError(
            500, f"Non-matching dry-run options in request and content: [All] and [{' '.join(told)}]"
        )
    return options, dry_query or "All" in told


def _without_version(options: Json) -> Json:
    """The pod was just checked and then marked by us: its version moved on, the one asked for has been honoured."""
    wanted = {k: v for k, v in (options.get("preconditions") or {}).items() if k != "resourceVersion"}
    return options | {"preconditions": wanted}


def _ignores_budgets(pod: Json) -> bool:
    return (
        pod["status"].get("phase") in {"Succeeded", "Failed", "Pending"}
        or "deletionTimestamp" in pod["metadata"]
    )


def _mark_target(store: Store, pod: Stored, options: Json) -> Stored:
    """The pod with the condition DisruptionTarget, checked first: a pod of another UID is not touched."""
    check_preconditions(PODS, pod.obj, options)
    conditions = pod.obj["status"].get("conditions") or []
    if any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in conditions):
        return pod
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(store.clock()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    kept = [c for c in conditions if c["type"] != "DisruptionTarget"]
    return store.put(PODS, pod.obj | {"status": pod.obj["status"] | {"conditions": [*kept, target]}})


def budgets_of(store: Store, pod: Json) -> list[Json]:
    """The PodDisruptionBudgets whose selector matches the pod."""
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    here = (b for b in store.all(BUDGETS) if b["metadata"]["namespace"] == namespace)
    return [b for b in here if object_selector(b["spec"].get("selector"))(labels)]


def _ask_budget(store: Store, pod: Json, *, dry: bool) -> None:
    """Take one disruption from the pod's budget, or refuse."""
    budgets = budgets_of(store, pod)
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise errors.ApiError(500, text)
    if not budgets:
        return
    budget = budgets[0]
    if not is_ready(pod) and _lets_unhealthy_go(budget):
        return
    if refusal := _refusal(budget):
        raise refusal
    if not dry:
        _take(store, budget, pod)


def is_ready(pod: Json) -> bool:
    """Whether the pod's condition Ready is true."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


def _lets_unhealthy_go(budget: Json) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    return status["desiredHealthy"] > 0 and bool(status["currentHealthy"] >= status["desiredHealthy"])


def _refusal(budget: Json) -> errors.ApiError | None:
    name, status = budget["metadata"]["name"], budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        return errors.budget_blocks(text, retry_after=UNPROCESSED_RETRY_SECONDS)
    if status["disruptionsAllowed"] < 0:
        return _forbidden(name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        too_many = "too many pending evictions not confirmed by PDB controller"
        return _forbidden(
            name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller", too_many
        )
    if status["disruptionsAllowed"] == 0:
        return errors.budget_blocks(_why_none(name, status))
    return None


def _forbidden(name: str, why: str, detail: str) -> errors.ApiError:
    text = f"The disruption budget {name} does not allow evicting pods currently: {detail}"
    details: dict[str, Any] = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    details["causes"] = [{"reason": "DisruptionBudget", "message": text}]
    return errors.ApiError(
        403, f'poddisruptionbudget.policy "{name}" is forbidden: {why}', "Forbidden", details
    )


def _why_none(name: str, status: Json) -> str:
    conditions: list[Json] = status.get("conditions") or []
    condition = next((c for c in conditions if c["type"] == "DisruptionAllowed"), {})
    explained = condition.get("message") if condition.get("status") == "False" else ""
    closed = f"The disruption budget {name} does not allow evicting pods currently"
    if explained and condition["reason"] == "SyncFailed":
        return f"{closed} because it failed sync: {explained}"
    if status["currentHealthy"] <= status["desiredHealthy"]:
        needs, has = status["desiredHealthy"], status["currentHealthy"]
        return f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    return f"{closed} ({condition['reason']}): {explained}" if explained else closed


def _take(store: Store, budget: Json, pod: Json) -> None:
    status = budget["status"]
    disrupted = (status.get("disruptedPods") or {}) | {pod["metadata"]["name"]: rfc3339(store.clock())}
    spent = status | {"disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
    if spent["disruptionsAllowed"] == 0:
        spent["conditions"] = [
            allowed_condition(spent, budget["metadata"].get("generation", 0), rfc3339(store.clock()))
        ]
    store.put(BUDGETS, budget | {"status": spent})


def allowed_condition(status: Json, generation: int, now: str) -> Json:
    """The condition DisruptionAllowed that follows from `disruptionsAllowed`."""
    enough = status["disruptionsAllowed"] > 0
    return {
        "type": "DisruptionAllowed",
        "status": "True" if enough else "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "SufficientPods" if enough else "InsufficientPods",
        "message": "",
    }


def bind(store: Store, call: Call) -> Reply:
    """Give a pod to a node, once."""
    binding = read_object(call, "Binding", "v1")
    dry = call.dry_run()
    target = binding.get("target") or {}
    if binding["metadata"].get("name") != call.name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if target.get("kind", "Node") not in {"Node", ""}:
        text = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise errors.ApiError(500, text)
    if not target.get("name"):
        raise errors.ApiError(500, "target.name: Required value")
    pod = found(store, call).obj
    if refusal := _binding_refusal(pod):
        raise errors.conflict("pods/binding", call.name, refusal)
    if not dry:
        store.put(PODS, bound(pod, target["name"], rfc3339(store.clock())))
    return Reply.of(201, errors.success(201))


def _binding_refusal(pod: Json) -> str:
    name = pod["metadata"]["name"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    return ""


def bound(pod: Json, node: str, now: str) -> Json:
    """The pod on its node, with the condition PodScheduled."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    kept = [c for c in pod["status"].get("conditions") or () if c["type"] != "PodScheduled"]
    status = pod["status"] | {"conditions": [*kept, scheduled]}
    return pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status}

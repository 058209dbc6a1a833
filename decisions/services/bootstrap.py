"""What the first start makes of the environment: a cluster, its policy, an admin. Safe to run at every start."""

from datetime import datetime

from django.contrib.auth.models import User

from decisions.models import Cluster, Role, RoleBinding
from decisions.services import access, clusters, policies
from decisions.services.actors import SYSTEM
from decisions.services.errors import Invalid
from deschedui.config import Environment


def bootstrap(*, env: Environment, now: datetime) -> list[str]:
    """Make what the environment names and the database lacks. Returns what was done, a sentence each.

    What is there already is left as it is: after the first start admins change it on the settings page.

    Raises:
        Invalid: the environment's values cannot be used; names the variable.
    """
    return [*_cluster(env, now), *_admins(now)]


def next_steps() -> list[str]:
    """What a person still has to do before anything can happen here, a sentence each."""
    steps = []
    if not Cluster.objects.exists():
        steps.append(
            "There is no cluster yet: set DESCHEDUI_CLUSTER_NAME, DESCHEDUI_CLUSTER_CONTEXT and "
            "DESCHEDUI_POLICY_FILE, or add one on the settings page."
        )
    if not RoleBinding.objects.exists():
        steps.append(
            "Nobody may do anything yet: manage.py createsuperuser, then manage.py grant <user> admin."
        )
    return steps


def _cluster(env: Environment, now: datetime) -> list[str]:
    if not env.cluster_name or Cluster.objects.filter(name=env.cluster_name).exists():
        return []
    try:
        cluster = clusters.create(
            name=env.cluster_name,
            in_cluster=env.cluster_in_cluster,
            kubeconfig=env.cluster_kubeconfig,
            context=env.cluster_context,
            policy_file=env.policy_file,
            policy_configmap=env.policy_configmap,
            by=SYSTEM,
            now=now,
        )
    except Invalid as problem:
        if Cluster.objects.filter(name=env.cluster_name).exists():
            return []  # Another process started at the same moment.
        raise Invalid(f"{_variable(problem.field)}: {problem}", problem.field) from problem
    return [f"Added cluster {cluster}. It only observes until an admin arms it.", *_policy(cluster, now)]


def _variable(field: str) -> str:
    names = {"name": "CLUSTER_NAME", "in_cluster": "CLUSTER_IN_CLUSTER", "kubeconfig": "CLUSTER_KUBECONFIG"}
    names |= {"context": "CLUSTER_CONTEXT"}
    return f"DESCHEDUI_{names.get(field, field.upper())}"


def _policy(cluster: Cluster, now: datetime) -> list[str]:
    """Read a policy file at once, so that the policy page shows it before the first cycle."""
    try:
        source = policies.read_source(cluster, None) if cluster.policy_file else None
    except policies.SourceProblem as problem:
        return [str(problem)]
    if source is None:
        return []
    checked = policies.validate(source.text, filename=cluster.policy_file)
    version = policies.store(cluster=cluster, source=source, checked=checked, now=now)
    state = "valid" if version.valid else f"not valid: {len(version.errors) or 1} errors, see the policy page"
    return [f"Read policy {cluster.policy_file}: {state}."]


def _admins(now: datetime) -> list[str]:
    """As long as nobody has any role, superusers are admins: they could write to the database anyway."""
    if RoleBinding.objects.exists():
        return []
    superusers = list(User.objects.filter(is_superuser=True, is_active=True))
    for user in superusers:
        access.bind_role(role=Role.ADMIN, user=user, by=SYSTEM, now=now)
    return [f"{user.get_username()} is admin of all clusters." for user in superusers]

"""Our accounts can do what is needed, and no more."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "K1",
        "the list of rights",
        cut(
            "deploy/base/rbac.yaml",
            "    resources: [pods, replicationcontrollers]",
            "    resources: [pods, replicationcontrollers, secrets]",
        ),
        "tests/kube/test_rights.py::test_nobody_may_watch_delete_patch_read_secrets_or_use_wildcards",
    ),
    Defence(
        "K2",
        "the namespace enforces it",
        cut("deploy/base/namespace.yaml", "    pod-security.kubernetes.io/enforce: restricted\n", ""),
        "tests/real/test_deploy.py::test_the_namespace_asks_for_the_restricted_standard",
    ),
    Defence(
        "K3",
        "beat mounts no token",
        cut(
            "deploy/base/beat.yaml",
            "automountServiceAccountToken: false",
            "automountServiceAccountToken: true",
        ),
        "tests/real/test_deploy.py::test_only_web_and_worker_get_a_token",
    ),
    Defence(
        "K4",
        "0440",
        cut("deploy/base/worker.yaml", "defaultMode: 288", "defaultMode: 420"),
        "tests/real/test_deploy.py::test_its_group_and_nobody_else_reads_the_secrets_files",
    ),
    Defence(
        "K5",
        "the address is left out",
        cut("deploy/network/networkpolicy.yaml", "except: [169.254.0.0/16]", "except: []"),
        "tests/real/test_deploy.py::test_the_clouds_credentials_of_the_node_are_out_of_reach",
    ),
    Defence(
        "K6",
        "the image's user",
        cut("deploy/Dockerfile", "USER 10001:10001\n", ""),
        "tests/real/test_deploy.py::test_the_image_runs_as_the_user_that_the_pods_name",
    ),
)

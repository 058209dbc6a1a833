"""Who is let in."""

import pytest

from tests.truth.server import Api


def test_a_wrong_token_is_unauthorized(api: Api) -> None:
    answer = api.call("GET", "/api/v1/pods", token="wrong")
    assert (answer.status, answer.message, answer.body["reason"]) == (401, "Unauthorized", "Unauthorized")
    assert "details" not in answer.body


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (
            "GET",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: {} list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            "GET",
            "/api/v1/nodes/n",
            'nodes "n" is forbidden: {} get resource "nodes" in API group "" at the cluster scope',
        ),
        (
            "POST",
            "/api/v1/namespaces/default/pods/p/eviction",
            'pods "p" is forbidden: {} create resource "pods/eviction" in API group "" in the namespace "default"',
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/default/deployments/d",
            (
                'deployments.apps "d" is forbidden: {} delete resource "deployments" in API group "apps" '
                'in the namespace "default"'
            ),
        ),
        ("GET", "/apis", 'forbidden: {} get path "/apis"'),
    ],
)
def test_nobody_may_nothing(api: Api, method: str, path: str, message: str) -> None:
    answer = api.call(method, path, {} if method == "POST" else None, token="")
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.message == message.format('User "system:anonymous" cannot')


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_health_is_open(api: Api, path: str) -> None:
    assert (api.call("GET", path, token="").status, api.call("GET", path, token="").body) == (200, "ok")


def test_the_version_is_the_one_that_is_imitated(api: Api) -> None:
    assert api.call("GET", "/version", token="").body["gitVersion"] == "v1.37.2"

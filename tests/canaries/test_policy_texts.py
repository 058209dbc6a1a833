"""Whatever a policy's text looks like, what is kept of it holds no header value, no user and no query of a URL."""

import pytest

from decisions.models import Cluster, PolicyVersion
from decisions.services import policies
from tests.builders import NOW
from tests.canaries.hunt import Canaries

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
PLUGIN = """profiles:
- name: default
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 60}
  - name: ExternalDecision
    args:
      extender:
        urlPrefix: https://ext.example
        ignorable: false
        httpTimeout: 5s
"""
ENABLED = """  plugins:
    deschedule: {enabled: [PodLifeTime]}
    preevictionfilter: {enabled: [ExternalDecision]}
"""

HEADERS = {
    "plain": "        httpHeaders: {Authorization: Bearer CANARY}\n",
    "a block": "        httpHeaders:\n          Authorization: Bearer CANARY\n          X: 'CANARY'\n",
    "a literal block": "        httpHeaders:\n          Authorization: |-\n            Bearer CANARY\n",
    "folded": "        httpHeaders:\n          Authorization: >-\n            Bearer\n            CANARY\n",
    "quoted over lines": '        httpHeaders:\n          Authorization: "Bearer\n            CANARY"\n',
    "an anchor": "        httpHeaders:\n          A: &a CANARY\n          B: *a\n",
    "a merge": "        httpHeaders:\n          <<: {A: CANARY}\n",
    "another case": "        HTTPheaders: {Authorization: Bearer CANARY}\n",
    "a list": "        httpHeaders: [Authorization, CANARY]\n",
    "a list of pairs": "        httpHeaders:\n        - name: Authorization\n          value: CANARY\n",
    "nested": "        httpHeaders: {Authorization: {value: {deep: CANARY}}}\n",
    "a number": "        httpHeaders: {X-Pin: 1, X: CANARY}\n",
    "a tag": "        httpHeaders: {X: !!str CANARY}\n",
    "a reference beside it": "        httpHeaders: {X: 'CANARY${env:TOKEN}'}\n",
    "a malformed reference": "        httpHeaders: {X: '${env:TOKEN} CANARY ${oops'}\n",
    "a comment": "        # httpHeaders: {Authorization: Bearer CANARY}\n",
    "a comment behind": "        podReferenceOnly: true  # token CANARY\n",
    "a url in a comment": "        # see https://user:CANARY@x\n",
    "text only": "        httpHeaders: Bearer CANARY\n",
    "twice": "        httpHeaders: {A: CANARY}\n        httpHeaders: {A: CANARY}\n",
    "not closed": "        httpHeaders: {Authorization: Bearer CANARY\n",
    "a tab": "        httpHeaders:\n\tAuthorization: Bearer CANARY\n",
    "a misspelt field": "        httpHeader: {Authorization: Bearer CANARY}\n",
    "an indentation that slipped": "        httpHeaders:\n        Authorization: Bearer CANARY\n",
    "another place": "        apiKey: CANARY\n",
    "headers": "        headers: {Authorization: Bearer CANARY}\n",
}
URLS = {
    "a password": "https://user:CANARY@ext.example",
    "a user": "https://CANARY@ext.example",
    "an at in a password": "https://user:x@CANARY@ext.example",
    "a query": "https://ext.example/?anything=CANARY",
    "a bare query": "https://ext.example?CANARY",
    "a fragment": "https://ext.example/#CANARY",
    "a door": "https://d.example/doors/CANARY",
    "a door with a slash": "https://d.example//doors//CANARY/",
    "a door with a wrong scheme": "ftp://d.example/doors/CANARY/x",
    "an encoded door": "https://d.example/%64oors/CANARY/",
}
TEXTS = {
    **{f"headers: {name}": HEAD + PLUGIN + lines + ENABLED for name, lines in HEADERS.items()},
    **{
        f"urlPrefix: {name}": HEAD + PLUGIN.replace("https://ext.example", url) + ENABLED
        for name, url in URLS.items()
    },
    **{
        f"quoted urlPrefix: {name}": HEAD + PLUGIN.replace("https://ext.example", f'"{url}"') + ENABLED
        for name, url in URLS.items()
    },
    "decisionVerb: a query": HEAD + PLUGIN + "        decisionVerb: evict?anything=CANARY\n" + ENABLED,
    "JSON": '{"kind": "DeschedulerPolicy", "profiles": [{"x": {"httpHeaders": {"A": "CANARY"}}}]}',
    "JSON not closed": '{"kind": "DeschedulerPolicy", "profiles": [{"httpHeaders": {"A": "CANARY"',
    "JSON with escapes": '{"kind": "DeschedulerPolicy", "\\u0068ttpHeaders": {"A": "CANARY"}}',
    "JSON, a url": '{"kind": "DeschedulerPolicy", "urlPrefix": "https://x/?a=CANARY"}',
}


@pytest.mark.django_db
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_kept_of_a_policy_has_no_secret(cluster: Cluster, text: str) -> None:
    canaries = Canaries()
    text = text.replace("CANARY", canaries.new("policy"))
    source = policies.Source(text, "file policy.yaml")
    policies.store(cluster=cluster, source=source, checked=policies.validate(text), now=NOW)
    row = PolicyVersion.objects.get()
    kept = [("text", row.text), ("errors", f"{row.errors} {row.warnings}"), ("upstream", row.upstream_error)]
    assert canaries.found(kept) == []

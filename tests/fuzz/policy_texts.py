"""Policies, real ones and what becomes of them under unkind hands; and texts that are meant to hurt."""

from __future__ import annotations

import json
from typing import Final

import yaml
from hypothesis import strategies as st

from deschedui.config import ROOT

GOLDEN: Final = (
    ROOT.parent / "shared" / "golden" / "cases"
)  # the recorded ones, where they lie beside the checkout


def _seeds() -> list[str]:
    checked_in = [ROOT / "deschedui" / "demo" / "policy.yaml", ROOT / "deploy" / "base" / "policy.yaml"]
    recorded = sorted(GOLDEN.glob("*/policy.yaml"))[::20]
    texts = [path.read_text(encoding="utf-8") for path in [*checked_in, *recorded]]
    return [*texts, *(json.dumps(yaml.safe_load(text)) for text in texts[:3]), FULL]


FULL: Final = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: role=worker
maxNoOfPodsToEvictTotal: 10
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: all
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: true, minReplicas: 2, labelSelector: {matchLabels: {a: b}}, priorityThreshold: {value: 5}}
  - name: RemovePodsViolatingNodeTaints
    args: {excludedTaints: [dedicated=x], includePreferNoSchedule: true}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 3600, states: [Pending], namespaces: {include: [shop]}}
  - name: ExternalDecision
    args:
      approval: Required
      extenders: [{urlPrefix: 'https://ext.example', decisionVerb: evict, ignorable: false, httpTimeout: 5s}]
  plugins:
    filter: {enabled: [DefaultEvictor, ExternalDecision]}
    deschedule: {enabled: [PodLifeTime, RemovePodsViolatingNodeTaints]}
"""
SEEDS: Final = _seeds()

# What YAML, JSON and Go take for something else than it looks.
NASTY: Final = [
    *(
        "&a",
        "*a",
        "&a [*a]",
        "<<: *a",
        "<<: {x: y}",
        "!!python/object/apply:os.system [x]",
        "!!binary x",
        "!!set {a}",
    ),
    *(
        "!!int x",
        "!!timestamp 2020-01-01",
        "2020-01-01",
        "2020-13-45T99:99:99Z",
        "0o17",
        "0x1F",
        "1_000",
        ".inf",
        ".nan",
    ),
    *(
        "~",
        "null",
        "yes",
        "on",
        "NO",
        "1e400",
        "-0",
        "9" * 5_000,
        "-" + "9" * 30,
        "1.5",
        "- - - -",
        "? x",
        "? [a]: b",
    ),
    *(
        "---\n",
        "...\n",
        "%YAML 1.2\n---\n",
        "\t",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ud7ff",
        "\U0001f4a5",
        "\r",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        "{}",
        "[]",
        '"',
        "'",
        "|",
        ">",
        "#",
        ": ",
        "- ",
        "\\u0000",
        "'\\ud800'",
        '"\\ud800"',
    ),
    *(
        "maxNoOfPodsToEvictTotal: -1",
        "name: x",
        "args: []",
        "args: 5",
        "profiles: {}",
        "kind: List",
        "apiVersion: v1",
    ),
    *(
        "${env:HOME}",
        "${file:/etc/passwd}",
        "http://user:pass@169.254.169.254/",
        "x" * 2_000,
        "[" * 300,
        "{a: " * 300,
    ),
]


def _changed(text: str, at: int, length: int, new: str, again: int) -> str:
    at %= len(text) + 1
    return text[:at] + new * again + text[at + length :]


_changes = st.tuples(
    st.integers(0, 100_000),
    st.sampled_from([0, 0, 1, 5, 60]),
    st.sampled_from(NASTY) | st.text(max_size=4),
    st.sampled_from([1, 1, 1, 3]),
)


def _apply(text: str, changes: list[tuple[int, int, str, int]]) -> str:
    for change in changes:
        text = _changed(text, *change)
    return text


def _shuffled(text: str, at: int, to: int) -> str:
    """One line somewhere else."""
    lines = text.splitlines(keepends=True)
    line = lines.pop(at % len(lines)) if lines else ""
    lines.insert(to % (len(lines) + 1), line)
    return "".join(lines)


_seed = st.sampled_from(SEEDS)
texts = (
    st.builds(_apply, _seed, st.lists(_changes, max_size=4))
    | st.builds(_shuffled, _seed, st.integers(0, 200), st.integers(0, 200))
    | st.binary(max_size=100).map(lambda data: data.decode("utf-8", "replace"))
    | st.text(max_size=60)
)


def _laughs(levels: int, width: int) -> str:
    more = (f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels))
    return "\n".join(["a0: &a0 [x, x]", *more])


def _merges(levels: int, width: int) -> str:
    lines = ["a0: &a0 {" + ", ".join(f"k{number}: v" for number in range(width)) + "}"]
    for level in range(1, levels):
        merged = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} {{<<: [{merged}], own{level}: v}}")
    return "\n".join(lines)


MB: Final = 1024 * 1024
HURTFUL: Final[dict[str, str]] = {
    "a billion laughs": _laughs(12, 10),
    "laughs in a policy": FULL + "\n" + _laughs(30, 2),
    "merges of merges": _merges(40, 30),
    "an anchor in itself": "a: &a [*a]",
    "an anchor in itself, further down": "a: &a {b: {c: [*a]}}",
    "lists without an end": "[" * 500_000,
    "mappings without an end": "{a: " * 200_000,
    "sequences by indent": "\n".join(" " * level + "-" for level in range(1_400)),
    "nested JSON": '{"a":' * 150_000,
    "nested JSON that is closed": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "many keys": "\n".join(f"k{number}: v" for number in range(90_000)),
    "the same key again and again": "a: b\n" * 200_000,
    "many profiles in JSON": json.dumps(
        {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": [{"name": "p"}] * 50_000,
        }
    ),
    "many wrong plugins": json.dumps(
        {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": [
                {"name": "p", "pluginConfig": [{"name": f"X{n}", "args": {"y": n}} for n in range(20_000)]}
            ],
        }
    ),
    "a long number": "maxNoOfPodsToEvictTotal: " + "9" * 900_000,
    "a long number in JSON": '{"maxNoOfPodsToEvictTotal": ' + "9" * 900_000 + "}",
    "an exponent": "maxNoOfPodsToEvictTotal: 1e999999999",
    "sexagesimal": "a: " + "1:" * 300_000 + "1",
    "a float without an end": "a: 0." + "1" * 900_000,
    "a long scalar": "a: " + "x" * (MB - 10),
    "a long plain scalar over lines": "a: " + "x\n   " * 150_000,
    "many documents": "---\na: b\n" * 100_000,
    "many anchors": "\n".join(f"k{number}: &a{number} v" for number in range(50_000)),
    "many comments": "#\n" * 500_000,
    "many tags": "\n".join(f"- !<tag:{number}> x" for number in range(40_000)),
    "many directives": "%TAG !a! tag:x\n" * 50_000 + "---\na: b",
    "blanks": " " * (MB - 1),
    "line ends": "\n" * (MB - 1),
    "tabs": "\t" * (MB - 1),
    "question marks": "? " * 200_000,
    "dashes": "- " * 200_000,
    "colons": ": " * 200_000,
    "quotes": '"' * 500_000,
    "a quote that does not end": '"' + "\\\n" * 400_000,
    "a block scalar": "a: |\n" + "  x\n" * 200_000,
    "NULs": "\x00" * MB,
    "ten megabytes": "a: b\n" * (2 * MB),
    "control characters": "".join(chr(number) for number in range(32)) * 10_000,
    "surrogates": "\ud800" * 1_000,
}

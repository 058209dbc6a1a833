"""A decision page quotes the policy's own lines."""

from deschedui.descheduler.policy import Lines, policy_lines
from tests.engine.policy.builders import HEAD

TEXT = f"""{HEAD}profiles:
- name: main
  pluginConfig:
  - name: DefaultEvictor
  - name: PodLifeTime
    args:
      maxPodLifeTimeSeconds: 3600
      states:
      - Running

  plugins:
    deschedule:
      enabled:
      - PodLifeTime
"""


def test_the_lines_that_configure_and_enable_a_plugin_are_found() -> None:
    assert policy_lines(TEXT, 0, "PodLifeTime") == (Lines(7, 11), Lines(16, 16))


def test_nothing_is_quoted_of_what_the_text_does_not_say() -> None:
    assert policy_lines(TEXT, 0, "ExternalDecision") == ()
    assert policy_lines(TEXT, 1, "PodLifeTime") == ()
    assert policy_lines("[", 0, "PodLifeTime") == ()
    assert policy_lines("profiles: 5", 0, "PodLifeTime") == ()

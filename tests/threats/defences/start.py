"""It does not start where it would be weak."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "B1",
        "the key is looked at",
        cut("deschedui/refusals.py", "    if len(key) < LEAST_KEY:", "    if False:"),
        "tests/start/test_refusals.py::test_a_key_that_can_be_guessed_is_refused_and_not_repeated",
    ),
    Defence(
        "B2",
        "the check",
        cut("decisions/checks.py", "if found:", "if False:"),
        "tests/start/test_checks.py::test_no_process_starts_with_the_demos_people",
    ),
    Defence(
        "B3",
        "a finding fails",
        cut(
            "tests/audit/__main__.py",
            '        return _told(_pip_audit(lock, "--osv-url", url))',
            "        return 0",
        ),
        "tests/audit/test_audit.py::test_a_weakness_of_what_is_pinned_is_found",
    ),
)

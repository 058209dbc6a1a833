"""No secret is kept, shown or sent on."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "S1",
        "door tokens are masked",
        cut("deschedui/masking.py", "return credentials(door_tokens(text))", "return credentials(text)"),
        "tests/canaries/test_masking.py::test_anything_between_the_slashes_is_a_token",
    ),
    Defence(
        "S2",
        "our own secrets are hidden in logs",
        cut("deschedui/settings.py", "hide(refusals.secrets_of(ENV))", "hide(())"),
        "tests/canaries/test_whole_job.py::test_no_canary_gets_out",
    ),
    Defence(
        "S3",
        "the reporter",
        cut("deschedui/settings.py", 'DEFAULT_EXCEPTION_REPORTER_FILTER = "deschedui.reports.Filter"\n', ""),
        "tests/canaries/test_whole_job.py::test_the_report_of_an_error_has_none",
    ),
    Defence(
        "S4",
        "names only",
        cut("deschedui/kube/redact.py", "env=_names", "env=_whole"),
        "tests/canaries/test_whole_job.py::test_no_canary_gets_out",
    ),
    Defence(
        "S5",
        "echoed values",
        cut("deschedui/extender/client.py", "if not self._known:", "if True:"),
        "tests/extender/test_reach.py::test_a_header_that_comes_back_is_not_kept",
    ),
    Defence(
        "S6",
        "the hash",
        cut(
            "decisions/services/access.py",
            "return hashlib.sha256(secret.encode()).hexdigest()",
            "return secret",
        ),
        "tests/domain/test_access_services.py::test_a_token_is_kept_as_its_hash_only",
    ),
)

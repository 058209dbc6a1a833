"""Nobody acts who may not."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "P1",
        "the list is limited",
        cut(
            "decisions/api/views.py",
            '        rows = access_of(self.request).decisions().select_related("cluster")',
            '        rows = Decision.objects.select_related("cluster")',
        ),
        "tests/access/test_matrix.py::test_each_person_gets_what_the_table_says",
    ),
    Defence(
        "P2",
        "the test of who gives",
        cut(
            "decisions/web/settings.py",
            '    _must(allowed=allowed, sentence="Only an admin of all clusters may give roles.")\n',
            "",
        ),
        "tests/access/test_matrix.py::test_each_person_gets_what_the_table_says",
    ),
    Defence(
        "P3",
        "the middleware",
        cut("deschedui/settings.py", '    "django.middleware.csrf.CsrfViewMiddleware",\n', ""),
        "tests/access/test_matrix.py::test_no_change_without_the_forms_token",
    ),
    Defence(
        "P4",
        "only POST",
        cut(
            "decisions/web/decision.py",
            '@answers(Permission.DECIDE, "POST")\ndef approve(',
            '@answers(Permission.DECIDE, "POST", "GET")\ndef approve(',
        ),
        "tests/access/test_matrix.py::test_no_other_method_answers",
    ),
    Defence(
        "P5",
        "the idle time",
        cut("decisions/services/sessions.py", "active_at__gt=now - idle()", ""),
        "tests/access/test_sessions.py::test_a_session_ends_after_eight_idle_hours_and_after_twelve",
    ),
    Defence(
        "P6",
        "a role ends them",
        cut(
            "decisions/services/rights.py",
            '    post_save.connect(_role_is_changed, sender=RoleBinding, dispatch_uid="rights")\n',
            "",
        ),
        "tests/access/test_sessions.py::test_what_a_person_may_changes_and_all_their_sessions_end",
    ),
    Defence(
        "P7",
        "the hash",
        cut(
            "decisions/services/sessions.py",
            'return digest_of(session_key or self.session_key or "")',
            'return session_key or self.session_key or ""',
        ),
        "tests/access/test_sessions.py::test_the_database_does_not_know_a_key",
    ),
    Defence(
        "P8",
        "the prefix",
        cut("deschedui/settings.py", '"__Host-deschedui" if', '"deschedui" if'),
        "tests/access/test_cookies.py::test_by_https_they_are_this_hosts_alone",
    ),
    Defence(
        "P9",
        "the back end",
        cut("deschedui/settings.py", '    "axes.backends.AxesStandaloneBackend",\n', ""),
        "tests/access/test_signing_in.py::test_closed_the_right_password_is_not_tried_either",
    ),
    Defence(
        "P10",
        "how many are trusted",
        cut(
            "deschedui/forwarded.py",
            'written[-trusted] if 0 < trusted <= len(written) else ""',
            "written[0]",
        ),
        "tests/access/test_signing_in.py::test_a_header_says_who_calls_as_far_as_our_proxies_wrote_it",
    ),
    Defence(
        "P11",
        "the right is in that query",
        cut(
            "decisions/services/evictions.py",
            "        decider_still_may(),\n        pk=decision_id,\n        attempt=attempt,",
            "        pk=decision_id,\n        attempt=attempt,",
        ),
        "tests/access/test_lost_rights.py::test_lost_between_the_last_look_and_the_call_nothing_is_sent",
    ),
    Defence(
        "P12",
        "the right is in it",
        cut(
            "decisions/services/evictions.py",
            "        decider_still_may(),\n        pk=decision_id,\n        verdict=Verdict.ALLOWED,\n",
            "        pk=decision_id,\n        verdict=Verdict.ALLOWED,\n",
        ),
        "tests/access/test_lost_rights.py::test_a_caller_is_told_no_yes_of_who_lost_the_right",
    ),
    Defence(
        "P13",
        "the owner is active",
        cut("decisions/services/access.py", ", owner__is_active=True)", ")"),
        "tests/access/test_matrix.py::test_a_token_that_is_none_gets_nothing_nor_does_a_session_beside_it",
    ),
    Defence(
        "P14",
        "the refusal",
        cut("decisions/services/verdicts.py", "    if by.user.pk in {started, asked}:", "    if False:"),
        "tests/domain/test_verdicts.py::test_nobody_reviews_their_own_where_that_is_forbidden",
    ),
)

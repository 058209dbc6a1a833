"""A failed call is no permission, and a yes is one that somebody gave."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "D1",
        "the last catch",
        cut("decisions/doors/asgi.py", "answer = refusals.refusal(refusals.OURS)", "raise"),
        "tests/doors/test_doors_over_http.py::test_an_error_before_the_question_is_read_is_a_no_too",
    ),
    Defence(
        "D2",
        "the deadline",
        cut("decisions/doors/asgi.py", "            if left <= 0:\n                raise TimeoutError\n", ""),
        "tests/doors/test_doors_over_http.py::test_a_database_that_hangs_is_a_no_in_time",
    ),
    Defence(
        "D3",
        "its refusals",
        cut("decisions/doors/protocol.py", "if self._at_door() or self._may_become_a_door():", "if False:"),
        "tests/doors/test_first_law.py::test_no_host_and_two",
    ),
    Defence(
        "D4",
        "the addresses",
        cut("decisions/doors/addresses.py", 'parts[0].lower() == "doors"', 'parts[0] == "door"'),
        "tests/doors/test_doors_over_http.py::test_every_spelling_of_the_address_is_answered",
    ),
    Defence(
        "D5",
        "revocation",
        cut(
            "decisions/doors/extender.py",
            "    if token.revoked_at is not None or caller.revoked_at is not None:",
            "    if False:",
        ),
        "tests/doors/test_extender_door.py::test_a_revoked_caller_is_a_no",
    ),
    Defence(
        "D6",
        "the networks",
        cut(
            "decisions/doors/extender.py",
            "if caller.networks and not _in_networks(knock.address, caller.networks):",
            "if False:",
        ),
        "tests/doors/test_extender_door.py::test_a_token_bound_to_networks_works_from_there_only",
    ),
    Defence(
        "D7",
        "the commit",
        cut(
            "decisions/services/asking.py",
            "if not evictions.tell(row.pk, by=Actor(name=caller.name), now=now):",
            "if False:",
        ),
        "tests/doors/test_extender_door.py::test_an_approved_pod_is_a_yes_that_was_committed_before_it_was_said",
    ),
    Defence(
        "D8",
        "the last question",
        cut(
            "decisions/doors/protocol.py",
            "self.loop.call_later(LAST_QUESTION_SECONDS, self._close_if_silent)",
            "super().shutdown()",
        ),
        "tests/doors/test_first_law.py::test_a_process_that_ends_answers_everybody_whom_it_let_in",
    ),
    Defence(
        "D9",
        "the bound",
        cut(
            "decisions/services/verdicts.py",
            "if ruling.verdict == Verdict.PENDING and (full := _waiting_room_is_full(ask)):",
            'if full := "":',
        ),
        "tests/doors/test_extender_door.py::test_too_many_waiting_are_not_recorded",
    ),
    Defence(
        "D10",
        "the host",
        cut("decisions/doors/asgi.py", '    if not _host_is_ours(_header(scope, b"host")):', "    if False:"),
        "tests/doors/test_doors_over_http.py::test_a_wrong_host_is_a_no",
    ),
    Defence(
        "D11",
        "the shape",
        cut("decisions/doors/refusals.py", 'if isinstance(answer["allow"], bool):', "if True:"),
        "tests/fuzz/test_door_bytes.py::test_only_a_well_formed_answer_leaves_and_its_yes_is_the_doors_own",
    ),
    Defence(
        "D12",
        "lost questions",
        cut("decisions/doors/asgi.py", "elif _is_lost(scope):", "elif False:"),
        "tests/doors/test_first_law.py::test_a_caller_that_is_set_up_with_a_wrong_address_hears_so",
    ),
)

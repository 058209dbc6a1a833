"""A restored or copied database evicts nothing until an admin says so."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "C1",
        "the counter is compared",
        cut("decisions/services/installation.py", "lease_counter__gte=above", "lease_counter__gte=0"),
        "tests/domain/test_installation.py::test_a_lease_ahead_of_the_database_freezes",
    ),
    Defence(
        "C2",
        "the id is compared",
        cut(
            "decisions/services/installation.py",
            "seen.holder != settings.INSTALLATION_ID or seen.counter is None",
            "seen.counter is None",
        ),
        "tests/domain/test_installation.py::test_another_installations_id_freezes",
    ),
    Defence(
        "C3",
        "a missing Lease is a stop",
        cut(
            "decisions/services/installation.py",
            "        if seen is None and was_ours",
            "        if False and was_ours",
        ),
        "tests/domain/test_installation.py::test_a_lease_that_is_gone_freezes",
    ),
    Defence(
        "C4",
        "the stop is tested",
        cut("decisions/queries/installation.py", 'f"{prefix}stopped": "",', ""),
        "tests/domain/test_installation.py::test_a_stop_between_the_claim_and_the_call_holds_the_call",
    ),
    Defence(
        "C5",
        "whose check it was",
        cut("decisions/queries/installation.py", '            f"{prefix}lease_checked_by": mark(),\n', ""),
        "tests/doors/test_installation_at_the_door.py::test_a_copy_says_no_although_the_other_one_checked_a_moment_ago",
    ),
    Defence(
        "C6",
        "an old check counts for nothing",
        cut(
            "decisions/queries/installation.py",
            '            f"{prefix}lease_checked_at__gt": now - FRESH,\n',
        ),
        "tests/domain/test_installation.py::test_a_check_that_is_too_old_holds_the_call",
    ),
    Defence(
        "C7",
        "never downwards",
        cut("decisions/services/installation.py", "if above < counter:", "if True:"),
        "tests/domain/test_installation_races.py::test_a_worker_that_slept_between_its_two_writes_never_lowers_the_lease",
    ),
    Defence(
        "C8",
        "it has an end",
        cut("decisions/queries/installation.py", "return bool(at and", "return bool(at or"),
        "tests/domain/test_installation.py::test_a_word_holds_for_ten_minutes",
    ),
    Defence(
        "C9",
        "the permission",
        cut(
            "decisions/web/settings.py",
            "    cluster = _cluster(request)\n    row = installation.confirm(",
            "    cluster = _cluster(request, Permission.VIEW)\n    row = installation.confirm(",
        ),
        "tests/web/test_installation_pages.py::test_confirming_takes_an_admin",
    ),
)

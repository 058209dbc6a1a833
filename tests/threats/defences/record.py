"""The record says what happened, and shows where somebody changed it."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "R1",
        "triggers on the rows",
        cut("decisions/guards.py", "for table in (*ROWS, HEADS) for kind", "for table in (HEADS,) for kind"),
        "tests/domain/test_record.py::test_the_database_refuses_to_change_an_entry",
    ),
    Defence(
        "R2",
        "the hash is compared",
        cut(
            "decisions/services/verification.py",
            "    if digest(row, chain=head.name, seq=seq, before=before) == row.hash:",
            "    if digest(row, chain=head.name, seq=seq, before=before):",
        ),
        "tests/domain/test_verify_audit.py::test_a_changed_row_of_the_timeline",
    ),
    Defence(
        "R3",
        "a gap is a break",
        cut("decisions/services/verification.py", "        return _gap(head, seq)", "        return None"),
        "tests/domain/test_verify_audit.py::test_a_row_that_was_taken_out",
    ),
    Defence(
        "R4",
        "the kept head is compared",
        cut("decisions/services/verification.py", "kept.seq > head.seq", "False"),
        "tests/domain/test_verify_audit.py::test_a_tail_cut_off_with_its_head_shows_against_an_exported_head",
    ),
    Defence(
        "R5",
        "the kept hash is compared",
        cut("decisions/services/verification.py", "kept.hash == rows[0].hash", "True"),
        "tests/domain/test_verify_audit.py::test_a_chain_that_was_written_anew_shows_against_a_kept_head",
    ),
    Defence(
        "R6",
        "nothing is written of what is rolled back",
        cut("decisions/services/timeline.py", "            if not get_rollback():", "            if True:"),
        "tests/domain/test_record.py::test_a_change_that_is_rolled_back_leaves_no_entry_and_no_gap",
    ),
    Defence(
        "R7",
        "a head only goes on",
        cut("decisions/guards.py", "NEW.seq < OLD.seq", "NEW.seq < 0"),
        "tests/domain/test_record.py::test_a_head_only_goes_on",
    ),
    Defence(
        "R8",
        "so many a minute",
        cut("decisions/web/signins.py", "if self._told >= self.most:", "if self._told < 0:"),
        "tests/web/test_signins.py::test_attempts_on_other_names_do_not_fill_the_record",
    ),
    Defence(
        "R9",
        "unknown names are left out",
        cut(
            "decisions/web/signins.py",
            '_record("sign-in failed", request, NOBODY, "", **more)',
            '_record("sign-in failed", request, NOBODY, name, **more)',
        ),
        "tests/web/test_signins.py::test_a_name_that_nobody_has_is_not_kept_for_it_may_be_a_password",
    ),
)

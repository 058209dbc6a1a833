"""What comes in from outside is shown as what it is, and does nothing."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "I1",
        "what a template puts out is escaped as a whole",
        cut(
            "decisions/web/rendering.py",
            "visible_html(super().render(context, request))",
            "super().render(context, request)",
        ),
        "tests/web/test_outside_text.py::test_a_variable_needs_no_filter_to_be_shown_as_it_is",
    ),
    Defence(
        "I2",
        "no template switches HTML escaping off",
        cut("templates/base.html", "</body>", "{{ request.path|safe }}</body>"),
        "tests/web/test_outside_text.py::test_no_template_switches_escaping_off_or_runs_a_script_of_its_own",
    ),
    Defence(
        "I3",
        "scripts come from here only",
        cut("deschedui/settings.py", '"script-src": [SELF]', '"script-src": [SELF, "https:"]'),
        "tests/web/test_headers.py::test_every_address_answers_an_admin_with_them",
    ),
    Defence(
        "I4",
        "no page can be framed",
        cut("deschedui/settings.py", 'X_FRAME_OPTIONS = "DENY"', 'X_FRAME_OPTIONS = "SAMEORIGIN"'),
        "tests/web/test_headers.py::test_every_address_answers_an_admin_with_them",
    ),
    Defence(
        "I5",
        "texts of API servers and webhooks are made visible",
        cut(
            "deschedui/kube/text.py",
            'visible(_BREAKS.sub(" ", value[: limit * 4 + 64]))',
            '_BREAKS.sub(" ", value[: limit * 4 + 64])',
        ),
        "tests/test_text.py::test_an_event_hides_nothing_and_fits",
    ),
    Defence(
        "I6",
        "a text is one line of the log",
        cut("deschedui/settings.py", "                show_event,\n"),
        "tests/test_shown_logs.py::test_a_text_is_one_line_with_escapes",
    ),
    Defence(
        "I7",
        "a cell that begins a formula gets an apostrophe",
        cut("deschedui/text.py", """f"'{text}" if _FORMULA.match(text) else text""", "text"),
        "tests/test_text.py::test_no_cell_is_a_formula",
    ),
    Defence(
        "I8",
        "only http and https with a host are linked",
        cut("deschedui/text.py", "text if fits and _reaches_a_host(text) else", "text if True else"),
        "tests/test_text.py::test_and_to_nothing_else",
    ),
    Defence(
        "I9",
        "what no database takes is stored as its escape",
        cut(
            "decisions/models/fields.py",
            "_cut(_UNFIT.sub(lambda found: escape(found[0]), _cut(text, limit)), limit)",
            "_cut(text, limit)",
        ),
        "tests/domain/test_texts.py::test_a_text_is_made_to_fit",
    ),
    Defence(
        "I10",
        "a filter of the API is bounded",
        cut(
            "decisions/api/filters.py",
            "text = partial(filters.CharFilter, max_length=TEXT)",
            "text = partial(filters.CharFilter)",
        ),
        "tests/web/test_outside_text.py::test_a_filter_of_the_api_is_bounded",
    ),
)

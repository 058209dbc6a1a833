"""An extender and a policy reach nothing but what they are for."""

from tests.threats.defences.base import Defence, cut

DEFENCES: tuple[Defence, ...] = (
    Defence(
        "X1",
        "the address is looked at",
        cut(
            "deschedui/extender/addresses.py",
            "return any(form.is_link_local or form in _METADATA for form in forms)",
            "return False",
        ),
        "tests/extender/test_reach.py::test_an_address_that_is_link_local_in_any_form_is_refused",
    ),
    Defence(
        "X3",
        "the folder",
        cut("deschedui/extender/files.py", "if not wanted.is_relative_to(folder)", "if False"),
        "tests/extender/test_files.py::test_what_is_not_below_the_folder_is_refused",
    ),
    Defence(
        "X4",
        "the list",
        cut("deschedui/extender/files.py", "if name not in rules.env_allow", "if False"),
        "tests/extender/test_reach.py::test_a_variable_off_the_list_is_not_sent_although_it_is_set",
    ),
    Defence(
        "X5",
        "no proxy for the API server",
        cut("deschedui/kube/config.py", "    configuration.proxy = configuration.no_proxy = None\n", ""),
        "tests/kube/test_config.py::test_a_proxy_of_the_environment_is_not_used",
    ),
    Defence(
        "X6",
        "one deadline",
        cut(
            "deschedui/extender/client.py",
            "asyncio.timeout(callee.seconds)",
            "asyncio.timeout(callee.seconds * 20)",
        ),
        "tests/extender/test_exchange.py::test_the_whole_exchange_ends_at_the_limit",
    ),
    Defence(
        "X7",
        "a boolean",
        cut(
            "deschedui/extender/answers.py",
            "if value is not None and not isinstance(value, bool):",
            "if False:",
        ),
        "tests/extender/test_answers.py::test_allow_must_be_a_boolean",
    ),
)

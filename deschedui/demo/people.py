"""The demo's people. Everybody knows their password, so no other installation starts while they can sign in."""

from typing import Final

PASSWORD: Final = "evict-me-gently"  # noqa: S105 - printed at the demo's start
GROUP: Final = "deschedui demo"  # marks them in the database, whatever else is changed about them
USERS: Final = (("ada", "approver"), ("vera", "viewer"), ("root", "admin"))

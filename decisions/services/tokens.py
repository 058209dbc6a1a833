"""Tokens: 256 random bits, stored as their SHA-256 only, shown once."""

import hashlib
import secrets

PREFIX = "dui_"


def new_token() -> str:
    """A fresh token; the prefix lets secret scanners find one that leaked."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What is stored and looked up. A plain hash is enough for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()

"""Who acts: a person on a page, a token of theirs, a caller at a door, or deschedui itself."""

from dataclasses import dataclass

from django.contrib.auth.models import User


@dataclass(frozen=True)
class Actor:
    """Who did it, as the timeline says it."""

    name: str
    user: User | None = None

    @classmethod
    def person(cls, user: User) -> "Actor":
        """Somebody signed in, on a page."""
        return cls(name=user.get_full_name() or user.get_username(), user=user)

    @classmethod
    def token(cls, user: User, token_name: str) -> "Actor":
        """A program with an API token: the timeline says that it was a token."""
        return cls(name=f"{user.get_full_name() or user.get_username()} (token {token_name})", user=user)


SYSTEM = Actor(name="deschedui")

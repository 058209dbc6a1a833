"""Who acts: a person on a page, a token of theirs, a caller at a door, or deschedui itself."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from decisions.models import ApiToken


@dataclass(frozen=True)
class Actor:
    """Who did it, as the timeline says it."""

    name: str
    user: User | None = None
    token_id: int | None = None

    @classmethod
    def person(cls, user: User) -> "Actor":
        """Somebody signed in, on a page."""
        return cls(name=user.get_full_name() or user.get_username(), user=user)

    @classmethod
    def token(cls, token: ApiToken) -> "Actor":
        """A program with an API token: the timeline says that it was a token, the decision which one."""
        owner = token.owner.get_full_name() or token.owner.get_username()
        return cls(name=f"{owner} (token {token.name})", user=token.owner, token_id=token.pk)


SYSTEM = Actor(name="deschedui")

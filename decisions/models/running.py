"""What keeps running: workers that say they are alive, the reasons a team uses, and what a person prefers."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from decisions.models.fields import BoundedText


class Heartbeat(models.Model):
    """The last sign of life of a worker: it took a task from the broker and wrote to the database."""

    name = BoundedText(max_length=200, unique=True)
    seen_at = models.DateTimeField()

    objects: ClassVar[models.Manager["Heartbeat"]]

    def __str__(self) -> str:
        return self.name


class TeamReason(models.Model):
    """A reason for a denial that is one key away."""

    text = BoundedText(max_length=200, unique=True)

    objects: ClassVar[models.Manager["TeamReason"]]

    class Meta:
        ordering = ["text"]

    def __str__(self) -> str:
        return self.text


class Preference(models.Model):
    """What one person prefers."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="preference")
    time_zone = models.CharField(max_length=60, blank=True, help_text="Empty: the installation's.")
    keys = models.BooleanField(default=True, help_text="Single-key shortcuts.")

    objects: ClassVar[models.Manager["Preference"]]

    def __str__(self) -> str:
        return f"preferences of {self.user}"

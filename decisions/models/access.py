"""Who may: roles by cluster and namespace, API tokens, and the callers of doors with their tokens."""

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from decisions.models.clusters import Cluster
from decisions.models.enums import Role
from decisions.models.fields import BoundedText


class RoleBinding(models.Model):
    """A user or a group has a role in some clusters (none: all) and namespaces (empty: all)."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="role_bindings"
    )
    group = models.ForeignKey(Group, models.CASCADE, null=True, blank=True, related_name="role_bindings")
    role = models.CharField(max_length=10, choices=Role.choices)
    clusters = models.ManyToManyField(Cluster, blank=True, help_text="None chosen: every cluster.")
    namespaces = models.JSONField(default=list, blank=True, help_text="Empty: every namespace.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager["RoleBinding"]]

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, group__isnull=True)
                | Q(user__isnull=True, group__isnull=False),
                name="role_binding_of_a_user_or_a_group",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.role}"


@receiver(pre_delete, sender=Cluster)
def forget_roles_of(instance: Cluster, **_: object) -> None:
    """A role in one cluster ends with it: left without its cluster it would be a role in every one."""
    elsewhere = Exists(Cluster.objects.filter(rolebinding=OuterRef("pk")).exclude(pk=instance.pk))
    RoleBinding.objects.filter(~elsewhere, clusters=instance).delete()


class ApiToken(models.Model):
    """Lets a program act for its owner. Stored hashed, shown once; ``read`` unless more was given."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = BoundedText(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list, help_text="read, decide, override, configure.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager["ApiToken"]]

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"token {self.name} of {self.owner}"


class Caller(models.Model):
    """Someone registered to ask us at a door: a descheduler, later a scheduler or an admission webhook."""

    class Door(models.TextChoices):
        EXTENDER = "extender"

    name = BoundedText(max_length=100)
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="callers")
    door = models.CharField(max_length=10, choices=Door.choices, default=Door.EXTENDER)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    verb = models.CharField(max_length=63, default="evict", help_text="decisionVerb of its configuration.")
    interval_seconds = models.PositiveIntegerField(default=300, help_text="How often it asks.")
    timeout_seconds = models.FloatField(default=5.0, help_text="Its httpTimeout.")
    kubernetes_username = BoundedText(max_length=253, blank=True)
    path_token_allowed = models.BooleanField(default=False, help_text="Its token may stand in the path.")
    networks = models.JSONField(default=list, blank=True, help_text="Source networks (CIDR); empty: any.")
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager["Caller"]]

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="caller_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def asker(self) -> str:
        """The key under which its decisions are kept."""
        return f"caller:{self.pk}"


class CallerToken(models.Model):
    """A caller's token, hashed; two may be valid at once, so that it can be rotated with an overlap."""

    caller = models.ForeignKey(Caller, models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=8, help_text="Its last characters, to tell tokens apart.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager["CallerToken"]]

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"…{self.hint} of {self.caller}"

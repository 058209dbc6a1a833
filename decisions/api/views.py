"""REST API v1. Thin: rows come from ``Access``, changes from the services, errors from ``problems``."""

from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from decisions.api import serializers as shapes
from decisions.api.authentication import access_of, actor_of
from decisions.api.filters import CycleFilter, DecisionFilter, PolicyFilter
from decisions.api.pagination import NewestId, NewestStarted
from decisions.models import Cluster, Cycle, CycleKind, Decision, Freeze, Permission, PolicyVersion
from decisions.services import cycles, freezes, installation, lookups, policies, verdicts
from decisions.services.clock import db_now

PROBLEM = OpenApiResponse(shapes.ProblemSerializer, description="application/problem+json")
CONFLICT = OpenApiResponse(
    shapes.ProblemSerializer,
    description="Somebody was first, or what was shown has changed.",
    examples=[
        OpenApiExample(
            "somebody was first",
            value={
                "type": "urn:deschedui:problem:conflict",
                "title": "Conflict",
                "status": 409,
                "detail": "Already approved by Ada.",
                "decision": 4711,
                "version": 1,
                "verdict": "allowed",
                "eviction": "queued",
                "decided_by": "Ada",
            },
        ),
        OpenApiExample(
            "it changed",
            value={
                "type": "urn:deschedui:problem:changed",
                "title": "Changed",
                "status": 409,
                "detail": "This changed since it was shown: node was n1, is now n2.",
                "version": 2,
                "changes": {"node": {"shown": "n1", "now": "n2"}},
            },
        ),
    ],
)
CHANGED_OR_REFUSED: dict[int, Any] = {400: PROBLEM, 403: PROBLEM, 404: PROBLEM, 409: CONFLICT}


def _read(serializer: type[BaseSerializer[Any]], request: Request) -> dict[str, Any]:
    shape = serializer(data=request.data)
    shape.is_valid(raise_exception=True)
    data: dict[str, Any] = shape.validated_data
    return data


class DecisionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Decision]):
    """Decisions: list, read, approve, deny, override, take back."""

    filter_backends = [DjangoFilterBackend]
    filterset_class = DecisionFilter
    needs: ClassVar[dict[str, str]] = {
        "approve": Permission.DECIDE,
        "deny": Permission.DECIDE,
        "take_back": Permission.DECIDE,
        "override": Permission.OVERRIDE,
    }
    lookup_value_converter = "int"
    queryset = Decision.objects.none()

    def get_queryset(self) -> "QuerySet[Decision]":
        rows = access_of(self.request).decisions().select_related("cluster")
        return rows if self.action == "list" else rows.prefetch_related("events")

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return shapes.DecisionSerializer if self.action == "list" else shapes.DecisionDetailSerializer

    def _decidable(self, permission: str) -> Decision:
        decision: Decision = self.get_object()
        if not access_of(self.request).may_decision(permission, decision):
            raise PermissionDenied(
                f"You may see this decision, but “{permission}” in {decision.namespace} is not yours."
            )
        return decision

    def _answer(self, decision: Decision) -> Response:
        fresh = Decision.objects.select_related("cluster").prefetch_related("events").get(pk=decision.pk)
        return Response(shapes.DecisionDetailSerializer(fresh).data)

    @extend_schema(
        request=shapes.ApproveSerializer,
        responses={200: shapes.DecisionDetailSerializer, **CHANGED_OR_REFUSED},
    )
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, pk: int) -> Response:
        """Allow a pending decision in the version that was shown."""
        decision = self._decidable(Permission.DECIDE)
        data = _read(shapes.ApproveSerializer, request)
        undo: float = settings.ENV.api_undo_seconds
        return self._answer(
            verdicts.approve(
                decision_id=decision.pk,
                version=data["version"],
                by=actor_of(request),
                undo_seconds=undo,
                now=db_now(),
            )
        )

    @extend_schema(
        request=shapes.DenySerializer, responses={200: shapes.DecisionDetailSerializer, **CHANGED_OR_REFUSED}
    )
    @action(detail=True, methods=["post"])
    def deny(self, request: Request, pk: int) -> Response:
        """Deny a pending decision in the version that was shown, with a reason."""
        decision = self._decidable(Permission.DECIDE)
        data = _read(shapes.DenySerializer, request)
        return self._answer(
            verdicts.deny(decision_id=decision.pk, by=actor_of(request), now=db_now(), **data)
        )

    @extend_schema(
        request=shapes.OverrideSerializer,
        responses={200: shapes.DecisionDetailSerializer, **CHANGED_OR_REFUSED},
    )
    @action(detail=True, methods=["post"])
    def override(self, request: Request, pk: int) -> Response:
        """Allow what was denied, with a reason."""
        decision = self._decidable(Permission.OVERRIDE)
        data = _read(shapes.OverrideSerializer, request)
        exists = lookups.pod_exists(decision)
        return self._answer(
            verdicts.override(
                decision_id=decision.pk,
                by=actor_of(request),
                reason=data["reason"],
                pod_exists=exists,
                now=db_now(),
            )
        )

    @extend_schema(
        request=shapes.TakeBackSerializer,
        responses={200: shapes.DecisionDetailSerializer, **CHANGED_OR_REFUSED},
    )
    @action(detail=True, methods=["post"], url_path="take-back")
    def take_back(self, request: Request, pk: int) -> Response:
        """Turn an approval into a denial while its eviction was not yet tried."""
        decision = self._decidable(Permission.DECIDE)
        data = _read(shapes.TakeBackSerializer, request)
        return self._answer(
            verdicts.take_back(decision_id=decision.pk, by=actor_of(request), now=db_now(), **data)
        )


class CycleViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Cycle]):
    """Cycles: list, read, start, start dry."""

    serializer_class = shapes.CycleSerializer
    filter_backends = [DjangoFilterBackend]
    filterset_class = CycleFilter
    pagination_class = NewestStarted
    needs: ClassVar[dict[str, str]] = {"create": Permission.DECIDE}
    lookup_value_converter = "int"
    queryset = Cycle.objects.none()

    def get_queryset(self) -> "QuerySet[Cycle]":
        return access_of(self.request).cycles().select_related("cluster", "policy")

    @extend_schema(
        request=shapes.StartCycleSerializer, responses={201: shapes.CycleSerializer, **CHANGED_OR_REFUSED}
    )
    def create(self, request: Request) -> Response:
        """Start a cycle now. 409 names the one that runs already; a dry run never waits for it."""
        data = _read(shapes.StartCycleSerializer, request)
        cluster = _cluster(request, data["cluster"], Permission.DECIDE)
        kind = CycleKind.DRY_RUN if data["dry_run"] else CycleKind.MANUAL
        cycle = cycles.start(cluster_id=cluster.pk, kind=kind, by=actor_of(request), now=db_now())
        return Response(self.get_serializer(cycle).data, status=201)


class PolicyViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[PolicyVersion]):
    """Policies: the versions that were read, and checking a text."""

    serializer_class = shapes.PolicySerializer
    pagination_class = NewestId
    filter_backends = [DjangoFilterBackend]
    filterset_class = PolicyFilter
    lookup_value_converter = "int"
    queryset = PolicyVersion.objects.none()

    def get_queryset(self) -> "QuerySet[PolicyVersion]":
        clusters = access_of(self.request).clusters()
        return PolicyVersion.objects.filter(cluster__in=clusters).select_related("cluster")

    @extend_schema(
        request=shapes.ValidateSerializer, responses={200: shapes.ValidationSerializer, 400: PROBLEM}
    )
    @action(detail=False, methods=["post"])
    def validate(self, request: Request) -> Response:
        """Check a policy text: all errors with their places, warnings, and what upstream would print."""
        data = _read(shapes.ValidateSerializer, request)
        checked = policies.validate(data["text"])
        verdict = {
            "valid": checked.policy is not None,
            "errors": checked.errors,
            "warnings": checked.warnings,
            "upstream_error": checked.upstream_error,
        }
        return Response(shapes.ValidationSerializer(verdict).data)


class FreezeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Freeze]):
    """Freezes: list, set, lift."""

    serializer_class = shapes.FreezeSerializer
    pagination_class = NewestId
    needs: ClassVar[dict[str, str]] = {"create": Permission.DECIDE, "lift": Permission.CONFIGURE}
    lookup_value_converter = "int"
    queryset = Freeze.objects.none()

    def get_queryset(self) -> "QuerySet[Freeze]":
        clusters = access_of(self.request).clusters()
        return (
            Freeze.objects.filter(cluster__in=clusters) | Freeze.objects.filter(cluster=None)
        ).select_related("cluster")

    @extend_schema(
        request=shapes.SetFreezeSerializer, responses={201: shapes.FreezeSerializer, **CHANGED_OR_REFUSED}
    )
    def create(self, request: Request) -> Response:
        """Freeze a cluster, or (cluster null) every cluster. Freezing what is frozen gives the freeze that is there."""
        data = _read(shapes.SetFreezeSerializer, request)
        name = data.get("cluster")
        cluster = _cluster(request, name, Permission.DECIDE) if name else None
        if cluster is None and not access_of(request).may(Permission.DECIDE, None):
            raise PermissionDenied("Freezing every cluster needs “decide” in every cluster.")
        row = freezes.freeze(cluster=cluster, by=actor_of(request), reason=data["reason"], now=db_now())
        return Response(shapes.FreezeSerializer(row).data, status=201)

    @extend_schema(request=None, responses={200: shapes.FreezeSerializer, **CHANGED_OR_REFUSED})
    @action(detail=True, methods=["post"])
    def lift(self, request: Request, pk: int) -> Response:
        """Lift a freeze. Lifting a lifted one changes nothing."""
        row: Freeze = self.get_object()
        if not access_of(request).may(Permission.CONFIGURE, row.cluster_id):
            raise PermissionDenied("Lifting a freeze needs “configure” there.")
        freezes.lift(freeze_id=row.pk, by=actor_of(request), now=db_now())
        row.refresh_from_db()
        return Response(shapes.FreezeSerializer(row).data)


class ClusterViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Cluster]):
    """Clusters: list, read, confirm that this installation is the one that works there."""

    serializer_class = shapes.ClusterSerializer
    pagination_class = NewestId
    lookup_field = "name"
    lookup_value_converter = "slug"
    needs: ClassVar[dict[str, str]] = {"confirm_installation": Permission.CONFIGURE}
    queryset = Cluster.objects.none()

    def get_queryset(self) -> "QuerySet[Cluster]":
        return access_of(self.request).clusters()

    @extend_schema(request=None, responses={200: shapes.ClusterSerializer, **CHANGED_OR_REFUSED})
    @action(detail=True, methods=["post"], url_path="confirm-installation")
    def confirm_installation(self, request: Request, name: str) -> Response:
        """Say that this installation is the one that works on a cluster that has frozen itself.

        A worker then takes the Lease over. Where nothing is frozen, nothing changes.
        """
        cluster = _cluster(request, name, Permission.CONFIGURE)
        row = installation.confirm(cluster=cluster, by=actor_of(request), now=db_now())
        return Response(shapes.ClusterSerializer(row).data)


def _cluster(request: Request, name: str, permission: str) -> Cluster:
    """A cluster by name: 404 if it is not visible, 403 if ``permission`` for all of it is not given."""
    access = access_of(request)
    try:
        cluster: Cluster = get_object_or_404(access.clusters(), name=name)
    except Exception as error:
        raise NotFound(f"There is no cluster {name!r:.70} that you may see.") from error
    if not access.may(permission, cluster.pk):
        raise PermissionDenied(f"You may see {name}, but “{permission}” for the whole cluster is not yours.")
    return cluster


class NotHere(APIView):
    """An address that is none of the API's: said in its own form, to whoever may use it."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whatever the method is."""
        super().initial(request, *args, **kwargs)
        raise NotFound("The API has no such address; /api/docs/ lists them.")

"""Which installation works on a cluster: the Lease, its counter, and what happens when it is not certain.

For a restored or copied database nothing in it can say so. So a Lease ``deschedui`` in the cluster holds this
installation's id and a counter that is also on the cluster's row. Before each claim, and every 10 s anyway:

1. read the Lease (or know it from our own last write). Another id: *foreign*. A counter above the database's, which
   is read afterwards: *ahead*. Gone although it was ours: *missing*.
2. raise the database's counter and commit it;
3. write it into the Lease, over exactly the version that was read, and never downwards.

The database is always raised first, so of one installation's workers, whoever was stopped in between, no Lease is
ever above the database; and after a backup was taken, every Lease that was written is above what the backup holds.

In doubt the cluster is frozen by itself (``Cluster.stopped``; claim, call and doors test it as they test a freeze),
what is open is withdrawn, and no cycle starts until an admin confirms this installation. The worker then takes the
Lease over: web has no right to write one.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Greatest

from decisions.models import OPEN, Cluster, Decision, Eviction
from decisions.models.enums import Stop
from decisions.queries import installation as query
from decisions.queries.installation import EVERY, LEASE, mark
from decisions.services import connections, nudge, timeline, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.clock import DATABASE, Clock
from decisions.services.connections import LeaseGate
from deschedui.kube.client import ClusterClient
from deschedui.kube.errors import Conflict, KubeError, NotFound, Throttled
from deschedui.kube.leases import LeaseClaim, LeaseView
from deschedui.kube.text import one_line, sentence

log = logging.getLogger(__name__)

TRIES = 5
# A check is written down at most so often: claims come in bursts, and the tests allow 25 s.
NOTED_EVERY = query.FRESH / 5


class NotOurs(Exception):  # noqa: N818 - an answer, not a fault
    """Nothing may be claimed in this cluster now; ``str()`` says why."""


# --- before each claim, and every few seconds -------------------------------------------------------------


def check(
    cluster: Cluster, client: ClusterClient, *, clock: Clock = DATABASE, gate: LeaseGate | None = None
) -> None:
    """Make sure that this installation is the one that works here: both counters are raised, the database's first.

    Threads of one process that ask at the same time share one write: each is served by one that began after it
    asked.

    Args:
        gate: what this process knows of the Lease; None: this process's own.

    Raises:
        NotOurs: the cluster is frozen by itself, or its Lease cannot be read or written.
    """
    gate = gate or connections.lease_gate(cluster)
    asked = gate.begun
    if not gate.lock.acquire(timeout=gate.patience):
        raise NotOurs("another look at the Lease of this installation has not come back yet")
    try:
        if gate.begun == asked:
            gate.begun += 1
            gate.outcome = "another look at the Lease of this installation broke"  # Until it ends otherwise.
            gate.outcome = _outcome(Check(cluster, client, clock, gate))
        if gate.outcome:
            raise NotOurs(gate.outcome)
    finally:
        gate.lock.release()


def _outcome(this: "Check") -> str:
    """Why not; empty where all is well."""
    try:
        this.make()
    except NotOurs as refused:
        this.gate.forget()
        return str(refused)
    except KubeError as error:
        this.gate.forget()
        _note_failure(this.cluster.pk, error, now=this.clock.now())
        return f"the Lease of this installation cannot be checked: {sentence(str(error), 400)}"
    return ""


@dataclass(frozen=True)
class Check:
    """One check of one cluster's Lease."""

    cluster: Cluster
    client: ClusterClient
    clock: Clock
    gate: LeaseGate

    @property
    def namespace(self) -> str:
        """Where the Lease is."""
        return self.cluster.settings.lease_namespace

    def make(self) -> None:
        """Raises NotOurs, KubeError."""
        started = self.clock.now()
        seen = self.gate.recent(started) or self._read(started)
        counter = self._raise(seen, started)
        for _ in range(TRIES):
            try:
                written = _write(self.client, self.namespace, counter, started, instead_of=seen)
            except Conflict:
                seen = self._read(started)
                if seen is not None and not self._is_behind(seen, counter):
                    break  # One of ours has written a higher one meanwhile: never downwards.
            else:
                self.gate.keep(written, started)
                break
        else:
            raise NotOurs("the Lease of this installation is written by others all the time")
        self._note(started)

    # --- reading

    def _read(self, started: datetime) -> LeaseView | None:
        """The Lease, where it is ours or still nobody's. Raises NotOurs."""
        # Asked first: another worker may make it while we look.
        rows = Cluster.objects.filter(pk=self.cluster.pk)
        was_ours = rows.filter(lease_counter__gt=0, lease_checked_at__isnull=False).exists()
        seen = self.client.read_lease(self.namespace, LEASE)
        if seen is None and was_ours:
            self._stop(Stop.MISSING, _missing(self._where), started)
        elif seen is None:
            return None  # First contact.
        elif seen.holder != settings.INSTALLATION_ID or seen.counter is None:
            self._stop(Stop.FOREIGN, _foreign(self._where, seen), started)
        return seen

    def _is_behind(self, seen: LeaseView, counter: int) -> bool:
        """Whether the Lease is below our counter. Raises NotOurs where it is above the database's."""
        above = seen.counter or 0
        if above < counter:
            return True
        stored = Cluster.objects.values_list("lease_counter", flat=True).get(pk=self.cluster.pk)
        if above > stored:
            self._stop(Stop.AHEAD, _ahead(self._where, above, stored), self.clock.now())
        return False

    # --- writing

    def _raise(self, seen: LeaseView | None, started: datetime) -> int:
        """The database's counter, one higher and committed. Raises NotOurs where the Lease is above it."""
        above = (seen.counter or 0) if seen else 0
        row = Cluster.objects.filter(pk=self.cluster.pk)
        with timeline.transaction():
            won = row.filter(stopped="", lease_counter__gte=above).update(
                lease_counter=F("lease_counter") + 1
            )
            counter, stopped = row.values_list("lease_counter", "stopped").get()
        if stopped:
            raise NotOurs(query.closed_sentence(row.get()))
        if not won:
            self._stop(Stop.AHEAD, _ahead(self._where, above, counter), started)
        return int(counter)

    def _note(self, started: datetime) -> None:
        """Write down that the Lease was ours. The time is that before it was read, and never an older one again."""
        if self.gate.noted_at is not None and started - self.gate.noted_at < NOTED_EVERY:
            return
        older = Q(lease_checked_at=None) | Q(lease_checked_at__lt=started) | ~Q(lease_checked_by=mark())
        Cluster.objects.filter(older, pk=self.cluster.pk, stopped="").update(
            lease_checked_at=started, lease_checked_by=mark(), lease_problem="", lease_problem_since=None
        )
        self.gate.noted_at = started

    # --- what it is about

    @property
    def _where(self) -> str:
        return f"The Lease {self.namespace}/{LEASE}"

    def _stop(self, kind: Stop, why: str, now: datetime) -> None:
        """Freeze the cluster by itself. Raises NotOurs, always."""
        stop(self.cluster.pk, kind=kind, why=why, now=now)
        raise NotOurs(query.closed_sentence(Cluster.objects.get(pk=self.cluster.pk)))


def _foreign(where: str, seen: LeaseView) -> str:
    if seen.holder == settings.INSTALLATION_ID:
        return f"{where} holds no counter that can be read: somebody else has written it"
    holder = one_line(seen.holder, 9) or "nobody"
    return (
        f"{where} names another installation ({holder}): two installations work on this cluster, or this one's id "
        "was changed, or its database is a copy of the other one's"
    )


def _missing(where: str) -> str:
    """Nothing in the cluster says then how far this installation had come: that is for an admin to say."""
    return (
        f"{where} is gone, and this installation had written it: it was deleted, or the cluster or the namespace is "
        "another one than before"
    )


def _ahead(where: str, above: int, stored: int) -> str:
    return (
        f"{where} counts {above}, this database {stored}: it is older than what this installation has done already; "
        "it was restored from a backup, or another one runs on a copy of it"
    )


def _write(
    client: ClusterClient, namespace: str, counter: int, at: datetime, *, instead_of: LeaseView | None
) -> LeaseView:
    """Make the Lease, or write it over this version. Raises Conflict where it is another one by now, KubeError."""
    claim = LeaseClaim(settings.INSTALLATION_ID, counter, at)
    if instead_of is None:
        return client.create_lease(namespace, LEASE, claim)
    try:
        return client.update_lease(namespace, LEASE, claim, seen=instead_of)
    except NotFound as gone:
        raise Conflict(str(gone), status=gone.status) from gone


def _note_failure(cluster_id: int, error: KubeError, *, now: datetime) -> None:
    """Keep on the cluster why its Lease cannot be checked, and what else that says of it."""
    rows, why = Cluster.objects.filter(pk=cluster_id), sentence(str(error), 400)
    rows.filter(lease_problem="").update(lease_problem=why, lease_problem_since=now)
    rows.exclude(lease_problem=why).update(lease_problem=why)
    if isinstance(error, connections.UNUSABLE):
        connections.record_problem(cluster_id, problem=str(error), now=now)
    if isinstance(error, Throttled):
        connections.slow_down(cluster_id, error.retry_after, now=now)


# --- freezing by itself -----------------------------------------------------------------------------------


def stop(cluster_id: int, *, kind: Stop, why: str, now: datetime) -> bool:
    """Freeze a cluster by itself and withdraw all that is open; False if it was so already.

    What is being called right now is withdrawn by the tick once its lease has run out and its pod was looked up
    (:func:`withdraw_stopped`), so that what really went is written as such.
    """
    rows = Cluster.objects.filter(pk=cluster_id)
    with timeline.transaction():
        won = rows.filter(stopped="").update(
            stopped=kind,
            stopped_at=now,
            stopped_why=why,
            stopped_withdrawn=0,
            confirmed_at=None,
            confirmed_by="",
            confirmed_for="",
        )
        if won:
            cluster = rows.get()
            withdrawn = verdicts.withdraw(
                decisions=Decision.objects.filter(OPEN, cluster_id=cluster_id),
                why=f"the cluster was frozen by itself: {kind.label}",
                now=now,
            )
            rows.update(stopped_withdrawn=withdrawn)
            detail = {"kind": kind.value, "withdrawn": withdrawn}
            timeline.audit("frozen by itself", at=now, by=SYSTEM, cluster=cluster, subject=why, detail=detail)
    if won:
        log.error("cluster %s is frozen by itself: %s", cluster, why)
    return bool(won)


def withdraw_stopped(*, now: datetime) -> int:
    """Withdraw what came back in clusters that are frozen by themselves: a call not sent, a lease that ran out."""
    return sum(_withdraw_rest(cluster, now=now) for cluster in Cluster.objects.exclude(stopped=""))


def _withdraw_rest(cluster: Cluster, *, now: datetime) -> int:
    rows = Decision.objects.filter(open=True, cluster_id=cluster.pk)
    why = f"the cluster is frozen by itself: {cluster.get_stopped_display()}"
    withdrawn = verdicts.withdraw(decisions=rows, why=why, now=now)
    if withdrawn:
        Cluster.objects.filter(pk=cluster.pk).update(stopped_withdrawn=F("stopped_withdrawn") + withdrawn)
    return withdrawn


# --- an admin's word --------------------------------------------------------------------------------------


def confirm(*, cluster: Cluster, by: Actor, now: datetime) -> Cluster:
    """Say that this installation is the one that works on the cluster; the worker then takes the Lease over.

    Confirming where nothing is to be confirmed changes nothing. The word holds for ten minutes.
    """
    rows = Cluster.objects.filter(pk=cluster.pk)
    with timeline.transaction():
        won = rows.exclude(stopped="").update(
            confirmed_at=now, confirmed_by=by.name[:200], confirmed_for=mark(), next_lease_at=None
        )
        if won:
            detail = {"kind": cluster.stopped}
            timeline.audit(
                "installation confirmed", at=now, by=by, cluster=cluster, subject=cluster.name, detail=detail
            )
            nudge.check_lease(cluster.pk)
    return rows.get()


def take_over(cluster: Cluster, client: ClusterClient, *, now: datetime) -> bool:
    """Take the Lease over after an admin's word: our id, and a counter above both. False: not yet.

    It waits for calls whose end is unknown: what was allowed before must not be claimed afterwards.

    Raises:
        KubeError: the Lease can be neither read nor written.
    """
    calling = Decision.objects.filter(open=True, cluster_id=cluster.pk, eviction=Eviction.EVICTING).exists()
    # In this order: a call that is not sent after all comes back as queued, and is withdrawn with the rest.
    _withdraw_rest(cluster, now=now)
    if calling:
        return False
    namespace, rows = cluster.settings.lease_namespace, Cluster.objects.filter(pk=cluster.pk)
    for _ in range(TRIES):
        seen = client.read_lease(namespace, LEASE)
        rows.update(lease_counter=Greatest(F("lease_counter"), (seen.counter or 0) if seen else 0) + 1)
        counter = rows.values_list("lease_counter", flat=True).get()
        try:
            _write(client, namespace, counter, now, instead_of=seen)
        except Conflict:
            continue
        return _go_on(cluster, seen, now=now)
    return False


def _go_on(cluster: Cluster, seen: LeaseView | None, *, now: datetime) -> bool:
    """Freeze it no longer, if the word is still the one that was given."""
    with timeline.transaction():
        won = Cluster.objects.filter(
            ~Q(stopped=""), pk=cluster.pk, confirmed_at=cluster.confirmed_at, confirmed_for=mark()
        ).update(
            stopped="",
            stopped_at=None,
            stopped_why="",
            confirmed_at=None,
            confirmed_by="",
            confirmed_for="",
            lease_checked_at=now,
            lease_checked_by=mark(),
            lease_problem="",
            lease_problem_since=None,
        )
        if won:
            detail = {"confirmed_by": cluster.confirmed_by, "from": one_line(seen.holder, 9) if seen else ""}
            timeline.audit(
                "Lease taken over", at=now, by=SYSTEM, cluster=cluster, subject=cluster.name, detail=detail
            )
    return bool(won)


# --- the heartbeat ----------------------------------------------------------------------------------------

# A cluster that only observes gets no Lease; one that was armed once keeps its own, or its restored database would
# find it where the backup left it.
_HELD = Q(armed=True) | Q(lease_counter__gt=0) | ~Q(stopped="")


def due_clusters(*, now: datetime) -> list[int]:
    """Clusters whose Lease has not been written for a while, or whose admin has given the word."""
    due = Cluster.objects.filter(_HELD, Q(next_lease_at=None) | Q(next_lease_at__lte=now))
    return list(due.order_by("pk").values_list("pk", flat=True))


def beat(cluster_id: int, *, clock: Clock = DATABASE) -> None:
    """Check a cluster's Lease, or take it over after an admin's word. Of several calls at once one does the work."""
    now = clock.now()
    turn = Cluster.objects.filter(_HELD, Q(next_lease_at=None) | Q(next_lease_at__lte=now), pk=cluster_id)
    if not turn.update(next_lease_at=now + EVERY):
        return
    cluster = Cluster.objects.get(pk=cluster_id)
    client = connections.client_for(cluster)
    if not cluster.stopped:
        _beat(cluster, client, clock)
    elif query.is_confirmed(cluster, now):
        _take_over_now(cluster, client, clock)


def _beat(cluster: Cluster, client: ClusterClient, clock: Clock) -> None:
    try:
        check(cluster, client, clock=clock)
    except NotOurs as why:
        log.warning("cluster %s: %s", cluster, why)
    else:
        connections.record_contact(cluster.pk, now=clock.now())


def _take_over_now(cluster: Cluster, client: ClusterClient, clock: Clock) -> None:
    try:
        done = take_over(cluster, client, now=clock.now())
    except KubeError as error:
        log.warning("cluster %s: its Lease cannot be taken over: %s", cluster, error)
        _note_failure(cluster.pk, error, now=clock.now())
        return
    log.info("cluster %s: the Lease is %s", cluster, "taken over" if done else "not taken over yet")

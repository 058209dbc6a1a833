"""What an admin can set for one cluster, with defaults and bounds. Stored on the cluster, only what differs."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

HOUR = 3600


class ClusterSettings(BaseModel):
    """Settings of one cluster; durations in seconds. The descriptions are the labels on the settings page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unattended: Literal["off", "answers", "failures"] = Field(
        "off",
        title="Unattended",
        description="What may happen without a human where a plugin says approval: NotRequired. "
        "off: nothing; answers: an extender that said yes; failures: also what ignorable or failPolicy made a yes.",
    )
    prevent_self_review: bool = Field(
        default=False,
        title="Prevent self-review",
        description="Who started the cycle, or whose user or token asked, cannot approve.",
    )
    dry_run_asks_extenders: bool = Field(
        default=False, title="Dry runs ask extenders", description="Otherwise a dry run says “would ask …”."
    )
    undo_seconds: float = Field(
        5, ge=0, le=60, title="Undo", description="Seconds in which an approval in the browser can be undone."
    )
    pending_seconds: int = Field(
        HOUR, ge=60, le=7 * 24 * HOUR, title="Pending expires after", description="Then nobody answered."
    )
    unanswered_backoff_seconds: tuple[int, ...] = Field(
        (HOUR, 4 * HOUR, 24 * HOUR),
        min_length=1,
        max_length=8,
        title="Back-off after nobody answered",
        description="After the first, second and later unanswered expiry this pod is not asked for again so long.",
    )
    approval_seconds: int = Field(
        15 * 60, ge=60, le=4 * HOUR, title="An approval holds", description="From when the pace lets it go."
    )
    approval_at_most_seconds: int = Field(
        4 * HOUR,
        ge=60,
        le=24 * HOUR,
        title="An approval holds at most",
        description="After the approval itself.",
    )
    delegated_seconds: int = Field(
        24 * HOUR,
        ge=60,
        le=7 * 24 * HOUR,
        title="A told yes holds",
        description="After its first yes was told.",
    )
    denial_cooldown_seconds: int = Field(
        24 * HOUR, ge=0, le=30 * 24 * HOUR, title="A denial holds", description="Changeable when denying."
    )
    max_waiting: int = Field(
        100, ge=1, le=10_000, title="Waiting at a time", description="Pending decisions of this cluster."
    )
    max_waiting_per_owner: int = Field(
        10, ge=1, le=1_000, title="Waiting per owner", description="Pending decisions of one owner."
    )
    in_flight_per_owner: int = Field(
        1,
        ge=1,
        le=100,
        title="Evictions in flight per owner",
        description="The next when the replacement is Ready.",
    )
    in_flight_per_cluster: int = Field(
        10, ge=1, le=500, title="Evictions in flight", description="In the whole cluster."
    )
    replacement_seconds: int = Field(
        600,
        ge=30,
        le=HOUR,
        title="Held without a replacement after",
        description="The owner's rest is held then.",
    )
    cycle_seconds: int = Field(
        600, ge=10, le=HOUR, title="A cycle's deadline", description="What was not asked by then is skipped."
    )
    still_there_seconds: int = Field(
        600,
        ge=60,
        le=HOUR,
        title="Say so when still there after",
        description="Still terminating, or not evicted.",
    )
    eviction_calls: int = Field(
        4, ge=1, le=64, title="Eviction calls in flight", description="To this API server."
    )
    requests_per_second: float = Field(
        20, ge=1, le=1_000, title="Requests a second", description="For cycles and carrying out."
    )
    lookups_per_second: float = Field(
        200, ge=1, le=5_000, title="Look-ups a second", description="For the doors."
    )
    lease_namespace: str = Field(
        "deschedui",
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        title="Namespace of the Lease",
        description="Where the Lease “deschedui” says which installation works on the cluster. "
        "After a change an admin has to confirm this installation again.",
    )

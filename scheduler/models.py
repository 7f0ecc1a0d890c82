"""Runs, rounds, shards, leases and results as they are stored; `scheduler.domain` decides how they change.

The in-memory state of the dispatcher is rebuilt from these rows at any time, so a server that is killed loses
nothing.
"""

import uuid

from django.db import models
from django.db.models import Q

from common.outbox import OutboxRow


class Run(models.Model):
    """One job's training as the scheduler sees it: what to train, on which slices, within which budget."""

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"  # given no new lease; what is leased goes on
        FINISHED = "finished"
        CANCELLED = "cancelled"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    buyer_id = models.BigIntegerField(help_text="jobs of one buyer share the fleet as one")
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    # Why it ended: epochs, target, budget, cancelled, or the code of a failure; and its sentence.
    ended_because = models.CharField(max_length=40, blank=True)
    ended_message = models.CharField(max_length=300, blank=True)

    program_sha256 = models.CharField(max_length=64)
    forward_sha256 = models.CharField(max_length=64)
    validation_sha256 = models.CharField(max_length=64)
    initial_params_sha256 = models.CharField(max_length=64)
    slices = models.JSONField(help_text="[{sha256, rows, bytes}], the training split cut up once, shuffled")
    seed = models.BigIntegerField()

    local_steps = models.PositiveIntegerField(help_text="H")
    batch_size = models.PositiveIntegerField()
    learning_rate = models.FloatField()
    schedule = models.CharField(max_length=10, default="constant", help_text="constant or cosine, by rounds")
    shards_per_round = models.PositiveIntegerField()
    rounds_planned = models.PositiveIntegerField()
    # Outer optimizer (DiLoCo): Nesterov momentum on the averaged delta.
    outer_learning_rate = models.FloatField(default=0.9)
    outer_momentum = models.FloatField(default=0.5)
    metric = models.CharField(max_length=20, help_text="accuracy or loss")
    target_metric = models.FloatField(null=True)

    step_flops = models.FloatField(help_text="static cost of one training step")
    step_bytes = models.FloatField()
    step_dispatches = models.PositiveIntegerField()
    memory_bytes = models.PositiveBigIntegerField(help_text="most that a shard takes on a device")
    largest_buffer_bytes = models.PositiveBigIntegerField(
        default=0, help_text="the largest single GPU buffer; 0 is unknown"
    )
    rates = models.JSONField(help_text="{device class: micro-USD per GPU-second}, frozen with the quote")
    fee_basis_points = models.PositiveIntegerField(
        help_text="the platform's part of each charge, frozen with the quote"
    )
    budget_microusd = models.BigIntegerField()
    spent_microusd = models.BigIntegerField(default=0)
    charge_carry = models.PositiveIntegerField(
        default=0, help_text="millionths of a micro-USD not charged yet"
    )

    params_sha256 = models.CharField(
        max_length=64, help_text="the newest parameters; the result, once it ended"
    )
    outer_state_sha256 = models.CharField(max_length=64, blank=True, help_text="newest outer momentum")
    waiting = models.CharField(max_length=20, blank=True, help_text="code of why it makes no headway now")
    waiting_bytes = models.PositiveBigIntegerField(
        default=0, help_text="the most that a device online has of the memory it lacks; 0 where it lacks none"
    )
    # The slices of the current epoch that no round has taken yet, in the order they will be.
    epoch = models.PositiveIntegerField(default=0)
    pending_slices = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(
                name="run_spends_no_more_than_its_budget",
                condition=Q(spent_microusd__lte=models.F("budget_microusd")),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.id}"


class Round(models.Model):
    """One outer step: all shards start from the same parameters; their deltas become the next ones."""

    class State(models.TextChoices):
        OPEN = "open"
        AGGREGATING = "aggregating"
        CLOSED = "closed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="rounds")
    index = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.OPEN)
    params_sha256 = models.CharField(max_length=64, help_text="parameters that its shards start from")
    outer_state_sha256 = models.CharField(
        max_length=64, blank=True, help_text="outer momentum before this round"
    )
    opened_at = models.DateTimeField()
    deadline_at = models.DateTimeField(null=True, help_text="set when a quorum of results is in")
    closed_at = models.DateTimeField(null=True)
    training_loss = models.FloatField(null=True)
    validation_loss = models.FloatField(null=True)
    validation_metric = models.FloatField(null=True)

    class Meta:
        ordering = ["run", "index"]
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="round_index_is_unique_in_a_run")
        ]

    def __str__(self) -> str:
        return f"round {self.index} of {self.run_id}"


class Shard(models.Model):
    """One unit of work: (program, parameter version, data slice, local steps, seed)."""

    class State(models.TextChoices):
        PENDING = "pending"
        LEASED = "leased"
        DONE = "done"
        DROPPED = "dropped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="shards")
    index = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    slice_index = models.PositiveIntegerField()
    seed = models.BigIntegerField()
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["round", "index"]
        constraints = [
            models.UniqueConstraint(fields=["round", "index"], name="shard_index_is_unique_in_a_round")
        ]

    def __str__(self) -> str:
        return f"shard {self.index} of {self.round}"


class Lease(models.Model):
    """One device's time-bounded claim on one shard, and what came back for it."""

    class State(models.TextChoices):
        GRANTED = "granted"  # sent, not confirmed
        RUNNING = "running"
        REPORTED = "reported"  # a result is in, being checked
        ACCEPTED = "accepted"
        REFUSED = "refused"
        HANDED_BACK = "handed_back"
        EXPIRED = "expired"
        REVOKED = "revoked"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    shard = models.ForeignKey(Shard, on_delete=models.CASCADE, related_name="leases")
    device_id = models.UUIDField()
    owner_id = models.BigIntegerField()
    device_class = models.CharField(max_length=20)
    state = models.CharField(max_length=12, choices=State.choices, default=State.GRANTED)
    reason = models.CharField(max_length=40, blank=True, help_text="code of a refusal, hand-back or revoke")
    step = models.PositiveIntegerField(default=0)
    granted_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    expected_gpu_us = models.PositiveBigIntegerField()
    rate_microusd = models.BigIntegerField(help_text="micro-USD per GPU-second")
    fee_basis_points = models.PositiveIntegerField(help_text="the platform's part of its charge")
    max_charge_microusd = models.BigIntegerField(
        help_text="reserved of the run's budget while the lease lives"
    )

    delta_sha256 = models.CharField(max_length=64, blank=True)
    delta_bytes = models.PositiveBigIntegerField(default=0)
    delta_norm = models.FloatField(null=True)
    losses = models.JSONField(default=list)
    reported_gpu_us = models.PositiveBigIntegerField(default=0)
    turnaround_us = models.PositiveBigIntegerField(default=0)
    metered_gpu_us = models.PositiveBigIntegerField(default=0)
    charge_microusd = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["granted_at"]
        indexes = [
            models.Index(fields=["device_id", "ended_at"], name="lease_by_device_and_end"),
            models.Index(fields=["owner_id", "ended_at"], name="lease_by_owner_and_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["shard"], condition=Q(state="accepted"), name="lease_a_shard_is_accepted_once"
            ),
            models.CheckConstraint(
                name="lease_charges_no_more_than_reserved",
                condition=Q(charge_microusd__lte=models.F("max_charge_microusd")),
            ),
        ]

    def __str__(self) -> str:
        return f"lease {self.id} ({self.state})"


class Standing(models.Model):
    """How a device has behaved: failures in a row lengthen the bench it sits on; one success clears it."""

    device_id = models.UUIDField(primary_key=True)
    failures_in_a_row = models.PositiveIntegerField(default=0)
    benched_until = models.DateTimeField(null=True)
    pace = models.FloatField(default=1.0, help_text="turnaround over expected time, learnt; makes deadlines")

    def __str__(self) -> str:
        return f"standing of {self.device_id}"


class Spell(models.Model):
    """A stretch of time in which a device was connected and one thing, or nothing, kept it from work.

    Between its spells a device was off line. Kept for two weeks, for owners to look at; nothing is decided by it.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    device_id = models.UUIDField()
    blocked = models.CharField(max_length=20, null=True, help_text="what kept it from work; null is nothing")  # noqa: DJ001 - as events have it
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        ordering = ["began_at"]
        indexes = [models.Index(fields=["device_id", "began_at"], name="spell_by_device_and_beginning")]
        constraints = [
            models.UniqueConstraint(
                fields=["device_id"], condition=Q(ended_at=None), name="spell_of_a_device_is_open_once"
            ),
            models.CheckConstraint(
                name="spell_ends_after_it_began",
                condition=Q(ended_at=None) | Q(ended_at__gte=models.F("began_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_id}: {self.blocked or 'free'} from {self.began_at:%d %b %H:%M}"


class DispatcherLock(models.Model):
    """Which process dispatches. Renewed in every batch's transaction, so that a stalled holder cannot write."""

    name = models.CharField(max_length=20, primary_key=True)
    holder = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class Inbox(OutboxRow):
    """News for the dispatcher from services and tasks: kind is an event's class name, payload its fields."""

    class Meta(OutboxRow.Meta):
        verbose_name_plural = "inbox"


class RunNews(OutboxRow):
    """News for the buyer's side: `round_closed` (run_id, round_index) and `run_ended` (run_id)."""

    class Meta(OutboxRow.Meta):
        verbose_name_plural = "run news"

"""Buyers' datasets and jobs.

A job is `quoted` when it is made, `running` once its quote is confirmed and its funds are held, and ends
`finished`, `cancelled` or `failed` when its last charge is posted and the rest of its hold released.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Dataset(models.Model):
    """Checked training data, stored once in canonical form. Shapes are those of one row."""

    class Task(models.TextChoices):
        CLASSES = "classes"
        NUMBERS = "numbers"
        TOKENS = "tokens"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=100)
    task = models.CharField(max_length=10, choices=Task.choices)
    sha256 = models.CharField(max_length=64, help_text="of the canonical file in the blob store")
    size_bytes = models.PositiveBigIntegerField()
    rows = models.PositiveBigIntegerField()
    input_shape = models.JSONField()
    input_dtype = models.CharField(max_length=10)
    target_shape = models.JSONField()
    target_dtype = models.CharField(max_length=10)
    classes = models.PositiveIntegerField(
        null=True, help_text="classes or vocabulary; null where numbers are predicted"
    )
    preview = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "sha256"], name="dataset_is_stored_once_for_an_owner"),
            models.CheckConstraint(name="dataset_has_two_rows", condition=Q(rows__gte=2)),
        ]

    def __str__(self) -> str:
        return self.name


class Job(models.Model):
    """One training job of a buyer: what to train, its quote, and what became of it."""

    class State(models.TextChoices):
        QUOTED = "quoted"
        RUNNING = "running"
        FINISHED = "finished"
        CANCELLED = "cancelled"
        FAILED = "failed"

    ENDED = (State.FINISHED, State.CANCELLED, State.FAILED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=100)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="jobs")
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUOTED)

    model_spec = models.JSONField(help_text="of marketplace.catalogue.specs")
    parameters = models.PositiveBigIntegerField(help_text="trainable numbers in the model")
    loss = models.CharField(max_length=20)
    label_smoothing = models.FloatField(default=0.0, help_text="of cross-entropy")
    optimizer_spec = models.JSONField(help_text="of marketplace.jobs.settings")
    batch_size = models.PositiveIntegerField()
    local_steps = models.PositiveIntegerField(help_text="H: steps a device trains between two exchanges")
    epochs = models.PositiveIntegerField()
    target_metric = models.FloatField(
        null=True, help_text="accuracy to reach, or loss to fall to; ends the job early"
    )
    validation_split = models.FloatField()
    seed = models.BigIntegerField()
    shards_per_round = models.PositiveIntegerField()
    delta_bits = models.PositiveSmallIntegerField(
        default=8, help_text="8 or 4: of each number by which a device moved the model"
    )
    budget_microusd = models.BigIntegerField()

    program_sha256 = models.CharField(max_length=64)
    forward_sha256 = models.CharField(max_length=64)
    step_flops = models.FloatField()
    step_bytes = models.FloatField()
    step_dispatches = models.PositiveIntegerField()
    memory_bytes = models.PositiveBigIntegerField(help_text="most that a shard takes on a device")
    largest_buffer_bytes = models.PositiveBigIntegerField(default=0, help_text="0 is unknown")

    # The quote. Low and high: what it should cost if all work went to the cheapest or the dearest device class.
    # Cap: what it can never exceed, were every result metered at its bound on the slowest device.
    rounds_planned = models.PositiveIntegerField()
    rates = models.JSONField(help_text="{device class: micro-USD per GPU-second}, frozen with the quote")
    fee_basis_points = models.PositiveIntegerField(
        help_text="the platform's part of each charge, frozen with the quote"
    )
    quote_basis = models.JSONField(
        help_text="by device class: how long a shard should take, its price and its cap"
    )
    quote_low_microusd = models.BigIntegerField()
    quote_high_microusd = models.BigIntegerField()
    quote_cap_microusd = models.BigIntegerField()
    quote_expires_at = models.DateTimeField(help_text="until then it can be confirmed")
    hold_microusd = models.BigIntegerField(
        help_text="set aside on confirmation: the cap or the budget, if that is less"
    )

    run_id = models.UUIDField(null=True, unique=True)
    model_safetensors_sha256 = models.CharField(max_length=64, blank=True)
    model_pt2_sha256 = models.CharField(max_length=64, blank=True)
    ended_because = models.CharField(max_length=40, blank=True)
    ended_message = models.CharField(max_length=300, blank=True)

    created_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "id"]
        indexes = [
            models.Index(fields=["owner", "-created_at"]),
            models.Index(
                fields=["quote_expires_at"], condition=Q(state="quoted"), name="job_quote_that_expires"
            ),
        ]
        constraints = [
            models.CheckConstraint(name="job_budget_is_positive", condition=Q(budget_microusd__gt=0)),
            models.CheckConstraint(name="job_deltas_have_8_or_4_bits", condition=Q(delta_bits__in=(8, 4))),
            models.CheckConstraint(
                name="job_holds_no_more_than_its_budget",
                condition=Q(hold_microusd__gt=0, hold_microusd__lte=F("budget_microusd")),
            ),
            models.CheckConstraint(
                name="job_runs_only_with_a_run", condition=Q(run_id__isnull=False) | ~Q(state="running")
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def reference(self) -> str:
        """Names the job's hold in the ledger, and the job as the holder of what its run needs."""
        return f"job:{self.id}"

    @property
    def model_holder(self) -> str:
        """Names the job as the holder of its trained model."""
        return f"job:{self.id}:model"


class InvoiceYear(models.Model):
    """How many invoices a year (UTC) has; the row that whoever issues one locks, so that numbers have no gaps."""

    year = models.PositiveSmallIntegerField(primary_key=True)
    issued = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.year}: {self.issued}"


class Invoice(models.Model):
    """What a buyer paid for a job. Issued when the job is settled; the database refuses to change it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    year = models.PositiveSmallIntegerField()
    sequence = models.PositiveIntegerField()
    job = models.OneToOneField(Job, on_delete=models.PROTECT, related_name="invoice")
    buyer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="invoices")
    issued_at = models.DateTimeField()

    # As they were then, in lines.
    seller = models.TextField()
    buyer_details = models.TextField()
    job_name = models.CharField(max_length=100)

    total_microusd = models.BigIntegerField(help_text="the sum of the lines, and of what the ledger charged")
    total_cents = models.BigIntegerField()
    fee_microusd = models.BigIntegerField(help_text="the platform's part, contained in the total")
    tax_name = models.CharField(max_length=20)
    tax_basis_points = models.PositiveIntegerField()
    tax_microusd = models.BigIntegerField(help_text="contained in the total")
    tax_note = models.TextField()

    class Meta:
        ordering = ["-year", "-sequence"]
        constraints = [
            models.UniqueConstraint(fields=["year", "sequence"], name="invoice_number_is_given_once"),
            models.CheckConstraint(name="invoice_numbers_begin_at_one", condition=Q(sequence__gte=1)),
            models.CheckConstraint(name="invoice_total_is_positive", condition=Q(total_microusd__gt=0)),
            models.CheckConstraint(
                name="invoice_contains_its_fee_and_tax",
                condition=Q(fee_microusd__gte=0, fee_microusd__lte=F("total_microusd"))
                & Q(tax_microusd__gte=0, tax_microusd__lte=F("total_microusd")),
            ),
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        return f"{self.year}-{self.sequence:06d}"


class InvoiceLine(models.Model):
    """The accepted work of one round on one class of device."""

    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="lines")
    position = models.PositiveIntegerField()
    round_number = models.PositiveIntegerField()
    device_class = models.CharField(max_length=20)
    rate_microusd = models.BigIntegerField(help_text="for a GPU-second")
    gpu_us = models.BigIntegerField()
    amount_microusd = models.BigIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["invoice", "position"], name="invoice_line_has_its_place"),
            models.CheckConstraint(
                name="invoice_line_is_not_negative", condition=Q(gpu_us__gte=0, amount_microusd__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.invoice_id} line {self.position}"

"""What the REST API of the buyer's side reads and writes. These only parse; the services decide."""

from typing import Any

from rest_framework import serializers

from marketplace.models import Dataset, Job


class DatasetIn(serializers.Serializer[Dataset]):
    file = serializers.FileField(
        help_text=".npz or .safetensors with inputs and targets, or .csv", allow_empty_file=True
    )
    name = serializers.CharField(max_length=100, required=False, help_text="default: the file's name")
    target_column = serializers.CharField(
        max_length=200, required=False, help_text="of a CSV: the column to predict; default: the last"
    )
    task = serializers.ChoiceField(
        choices=Dataset.Task.choices,
        required=False,
        help_text="what targets are for, if not as their type says",
    )


class DatasetOut(serializers.ModelSerializer[Dataset]):
    class Meta:
        model = Dataset
        fields = (
            "id",
            "name",
            "task",
            "rows",
            "input_shape",
            "input_dtype",
            "target_shape",
            "target_dtype",
            "classes",
            "size_bytes",
            "sha256",
            "preview",
            "created_at",
        )
        read_only_fields = fields


class ModelKind(serializers.Serializer[Any]):
    kind = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON schema")


class JobIn(serializers.Serializer[Job]):
    """Bounds are those of the settings, and checked there."""

    dataset = serializers.UUIDField()
    name = serializers.CharField()
    model = serializers.DictField(help_text="kind and parameters, as /api/models/ lists them")
    budget_microusd = serializers.IntegerField(help_text="the job never costs more; 1,000,000 is one USD")
    optimizer = serializers.DictField(
        required=False,
        help_text="{kind: sgd, learning_rate, momentum, clip_norm, ...}, {kind: adam, ...} or {kind: adamw, ...}",
    )
    loss = serializers.CharField(
        required=False, help_text="cross_entropy, mse or huber; default: as the targets need"
    )
    label_smoothing = serializers.FloatField(
        required=False, help_text="of cross_entropy: the share of each target that is spread over all classes"
    )
    batch_size = serializers.IntegerField(required=False)
    local_steps = serializers.IntegerField(required=False, help_text="H: steps between two exchanges")
    epochs = serializers.IntegerField(required=False)
    target_metric = serializers.FloatField(
        required=False, allow_null=True, help_text="accuracy to reach, or loss to fall to, that ends the job"
    )
    validation_split = serializers.FloatField(required=False)
    seed = serializers.IntegerField(required=False)
    shards_per_round = serializers.IntegerField(required=False)
    delta_bits = serializers.IntegerField(
        required=False,
        help_text="8, or 4 to halve what devices upload: bits of each number that training moved",
    )


class ClassPriceOut(serializers.Serializer[Any]):
    device_class = serializers.CharField()
    rate_microusd_per_gpu_second = serializers.IntegerField()
    shard_gpu_us = serializers.IntegerField(
        help_text="what a shard should take at the class's reference speed"
    )
    shard_microusd = serializers.IntegerField()
    usual_cap_microusd = serializers.IntegerField(help_text="the most a shard bills at reference speed")
    shard_cap_microusd = serializers.IntegerField(help_text="the most a shard bills on the slowest device")


class QuoteOut(serializers.Serializer[Job]):
    rounds = serializers.IntegerField(source="rounds_planned")
    low_microusd = serializers.IntegerField(source="quote_low_microusd")
    high_microusd = serializers.IntegerField(source="quote_high_microusd")
    cap_microusd = serializers.IntegerField(source="quote_cap_microusd", help_text="never exceeded")
    hold_microusd = serializers.IntegerField(help_text="set aside on confirmation")
    expires_at = serializers.DateTimeField(
        source="quote_expires_at", help_text="it can be confirmed until then, at these prices"
    )
    fee_basis_points = serializers.IntegerField(
        help_text="the platform's part of each charge; it is within the price, not on top"
    )
    basis = ClassPriceOut(source="quote_basis", many=True)


class JobOut(serializers.ModelSerializer[Job]):
    dataset = serializers.UUIDField(source="dataset_id")
    model = serializers.DictField(source="model_spec")
    optimizer = serializers.DictField(source="optimizer_spec")
    quote = QuoteOut(source="*")

    class Meta:
        model = Job
        fields = (
            "id",
            "name",
            "state",
            "dataset",
            "model",
            "parameters",
            "optimizer",
            "loss",
            "label_smoothing",
            "batch_size",
            "local_steps",
            "epochs",
            "target_metric",
            "validation_split",
            "seed",
            "shards_per_round",
            "delta_bits",
            "budget_microusd",
            "quote",
            "ended_because",
            "ended_message",
            "created_at",
            "confirmed_at",
            "cancel_requested_at",
            "ended_at",
        )
        read_only_fields = fields


class RoundOut(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField()
    training_loss = serializers.FloatField(allow_null=True)
    validation_loss = serializers.FloatField(allow_null=True)
    validation_metric = serializers.FloatField(allow_null=True)
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class JobDetailOut(serializers.Serializer[Any]):
    job = JobOut()
    state_words = serializers.CharField()
    waiting = serializers.CharField(allow_null=True, help_text="why it makes no headway now")
    metric = serializers.CharField()
    latest_metric = serializers.FloatField(allow_null=True)
    rounds = RoundOut(many=True)
    rounds_done = serializers.IntegerField()
    rounds_planned = serializers.IntegerField()
    samples = serializers.IntegerField()
    gpu_seconds = serializers.FloatField()
    spent_microusd = serializers.IntegerField()
    hold_left_microusd = serializers.IntegerField()
    eta = serializers.DateTimeField(allow_null=True)
    can_confirm = serializers.BooleanField()
    can_cancel = serializers.BooleanField()
    downloads = serializers.ListField(child=serializers.CharField())


class StatementLineOut(serializers.Serializer[Any]):
    created_at = serializers.DateTimeField()
    reason = serializers.CharField()
    memo = serializers.CharField()
    amount_microusd = serializers.IntegerField()


class WalletOut(serializers.Serializer[Any]):
    wallet_microusd = serializers.IntegerField(help_text="to spend; money in holds is not among it")
    earnings_microusd = serializers.IntegerField()
    wallet_statement = StatementLineOut(many=True)
    earnings_statement = StatementLineOut(many=True)

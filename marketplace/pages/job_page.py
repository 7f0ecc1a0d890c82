"""What a job's page shows beside the job's view: charts, the newest rounds, and the quote's basis in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from accounts.domain.device_classes import DEVICE_CLASSES
from accounts.models import User
from billing.selectors import wallet_balance
from common.money import format_usd
from marketplace.api.downloads import model_file_name
from marketplace.models import Invoice, Job
from marketplace.pages.charts import Series, line_chart
from marketplace.pages.filters import figure
from marketplace.selectors import JobView, RoundView, job_view

ROUNDS_LISTED = 50

# The line of Python that loads a model, by format; the one that needs nothing else comes first.
_LOADING = {
    "pt2": "import torch; model = torch.export.load({path!r}).module()",
    "safetensors": "import safetensors.torch; parameters = safetensors.torch.load_file({path!r})",
}


@dataclass(frozen=True, slots=True)
class BasisLine:
    """One device class of the quote."""

    label: str
    rate_microusd: int
    shard_gpu_us: int
    shard_microusd: int
    shard_cap_microusd: int


@dataclass(frozen=True, slots=True)
class Download:
    format: str
    loading: str


@dataclass(frozen=True, slots=True)
class JobPage:
    view: JobView
    quote_words: str
    fee_words: str
    to_go: str
    wallet_microusd: int
    missing_microusd: int  # to confirm the quote
    loss_chart: SafeString
    accuracy_chart: SafeString
    rounds: tuple[RoundView, ...]  # newest first
    rounds_left_out: int
    shards_words: str
    basis: tuple[BasisLine, ...]
    downloads: tuple[Download, ...]
    invoice: Invoice | None

    @property
    def live(self) -> bool:
        """Whether the page must look again for what is new."""
        return self.view.job.state == Job.State.RUNNING

    @property
    def returned_microusd(self) -> int:
        """What came back of the hold of a job that has ended."""
        return self.view.job.hold_microusd - self.view.spent_microusd


def job_page(job: Job, *, viewer: User, now: datetime) -> JobPage:
    view = job_view(job, now=now)
    wallet_microusd = wallet_balance(viewer)
    newest_first = tuple(reversed(view.rounds))
    return JobPage(
        view=view,
        quote_words=quote_words(job),
        fee_words=f"{job.fee_basis_points / 100:g} %",
        to_go=to_go_words(view.eta, now),
        wallet_microusd=wallet_microusd,
        missing_microusd=max(0, job.hold_microusd - wallet_microusd),
        loss_chart=_loss_chart(view),
        accuracy_chart=_accuracy_chart(view),
        rounds=newest_first[:ROUNDS_LISTED],
        rounds_left_out=len(newest_first[ROUNDS_LISTED:]),
        shards_words=shards_words(view.shards),
        basis=_basis(job.quote_basis),
        downloads=tuple(_download(job, name) for name in _LOADING if name in view.downloads),
        invoice=Invoice.objects.filter(job=job).first(),
    )


def quote_words(job: Job) -> str:
    """'$0.01 to $0.03'; work that the cheapest class does for nothing has no lower end to speak of."""
    if not job.quote_low_microusd:
        return f"up to {format_usd(job.quote_high_microusd)}"
    return f"{format_usd(job.quote_low_microusd)} to {format_usd(job.quote_high_microusd)}"


def to_go_words(eta: datetime | None, now: datetime) -> str:
    if eta is None:
        return ""
    minutes = round((eta - now).total_seconds() / 60)
    if minutes < 1:
        return "Less than a minute to go."
    hours, rest_min = divmod(minutes, 60)
    return f"About {hours} h {rest_min} min to go." if hours else f"About {minutes} min to go."


def shards_words(shards: dict[str, int]) -> str:
    """Of the round under way: '1 of 3 results in, 2 in work'."""
    total = sum(shards.values()) - shards.get("dropped", 0)
    if not total:
        return ""
    waiting = shards.get("pending", 0)
    parts = [f"{shards.get('done', 0)} of {total} results in", f"{shards.get('leased', 0)} in work"]
    return ", ".join([*parts, f"{waiting} waiting for a device"] if waiting else parts)


def _loss_chart(view: JobView) -> SafeString:
    return _safe(
        line_chart(
            title="Loss by round",
            description="Training loss on the devices and validation loss on held-out rows; lower is better.",
            series=[
                Series("training", [one.training_loss for one in view.rounds]),
                Series("validation", [one.validation_loss for one in view.rounds]),
            ],
            rounds=_rounds_drawn(view),
            value_text=figure,
        )
    )


def _accuracy_chart(view: JobView) -> SafeString:
    """Empty where numbers are predicted: their metric is the loss."""
    if view.metric != "accuracy":
        return _safe("")
    return _safe(
        line_chart(
            title="Accuracy by round",
            description="Share of held-out rows that the model gets right after each round; higher is better.",
            series=[Series("validation", [one.validation_metric for one in view.rounds])],
            rounds=_rounds_drawn(view),
            value_text=_percent,
            ceiling=1.0,
        )
    )


def _rounds_drawn(view: JobView) -> int:
    """While it runs the axis shows what is to come; afterwards what was."""
    return view.rounds_planned if view.job.state == Job.State.RUNNING else len(view.rounds)


def _safe(svg: str) -> SafeString:
    return mark_safe(svg)  # noqa: S308 - made by an XML writer, which escapes


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _basis(lines: Sequence[dict[str, Any]]) -> tuple[BasisLine, ...]:
    return tuple(
        BasisLine(
            label=DEVICE_CLASSES[line["device_class"]].label,
            rate_microusd=line["rate_microusd_per_gpu_second"],
            shard_gpu_us=line["shard_gpu_us"],
            shard_microusd=line["shard_microusd"],
            shard_cap_microusd=line["shard_cap_microusd"],
        )
        for line in lines
    )


def _download(job: Job, model_format: str) -> Download:
    loading = _LOADING[model_format].format(path=model_file_name(job, model_format))
    return Download(model_format, loading)

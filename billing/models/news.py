"""What the apps above must learn of money."""

from common.outbox import OutboxRow


class BillingNews(OutboxRow):
    """Kind is `wallet_frozen` or `wallet_unfrozen`; the payload names the `user_id`."""

    class Meta(OutboxRow.Meta):
        verbose_name_plural = "billing news"

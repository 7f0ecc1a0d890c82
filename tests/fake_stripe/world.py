"""The objects and the money of the fake Stripe, and what buyers, owners, banks and card holders do to them."""

import itertools
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
START = 1_790_000_000  # seconds; whatever happens, happens a second later than what came before
SECONDS_UNTIL_AVAILABLE = 0


@dataclass
class World:
    objects: dict[str, Json] = field(default_factory=dict)
    events: list[Json] = field(default_factory=list)
    balance_cents: int = 0  # the platform's
    account_cents: dict[str, int] = field(default_factory=dict)
    arrives_after_s: int = SECONDS_UNTIL_AVAILABLE
    connects: bool = True  # whether the platform has signed up for Connect
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def new(self, prefix: str, kind: str, **fields: Any) -> Json:
        number = next(self._numbers)
        made = {"id": f"{prefix}_{number:06d}", "object": kind, "created": START + number, **fields}
        self.objects[made["id"]] = made
        return made

    def of(self, kind: str) -> list[Json]:
        return [made for made in self.objects.values() if made["object"] == kind]

    def tell(self, event_type: str, about: Json, *, account: str | None = None) -> Json:
        """An event, with its object as it is at this moment."""
        event = self.new("evt", "event", type=event_type, livemode=False, data={"object": dict(about)})
        del self.objects[event["id"]]
        if account:
            event["account"] = account
        self.events.append(event)
        return event

    def tell_thin(self, event_type: str, about: Json) -> Json:
        """An event of the v2 API: it names its object and no more."""
        number = next(self._numbers)
        event = {
            "id": f"evt_v2_{number:06d}",
            "object": "v2.core.event",
            "type": event_type,
            "created": "2026-12-01T12:00:00.000Z",
            "related_object": {
                "id": about["id"],
                "type": about["object"],
                "url": f"/v2/core/accounts/{about['id']}",
            },
        }
        self.events.append(event)
        return event

    def moved(self, kind: str, cents: int, source: Json) -> Json:
        """A movement of the platform's balance."""
        self.balance_cents += cents
        return self.new(
            "txn",
            "balance_transaction",
            type=kind,
            amount=cents,
            net=cents,
            fee=0,
            currency="usd",
            source=source["id"],
            reporting_category=kind,
        )

    # What buyers do

    def pay(self, session_id: str) -> Json:
        session = self.objects[session_id]
        intent = self.new("pi", "payment_intent", amount=session["amount_total"], status="succeeded")
        charge = self.new("ch", "charge", amount=session["amount_total"], payment_intent=intent["id"])
        self.moved("charge", session["amount_total"], charge)
        session.update(status="complete", payment_status="paid", payment_intent=intent["id"], url=None)
        self.tell("payment_intent.succeeded", intent)
        self.tell("checkout.session.completed", session)
        return session

    def charged(self, intent: Json) -> None:
        """A payment that was made while its buyer was away."""
        intent["status"] = "succeeded"
        charge = self.new("ch", "charge", amount=intent["amount"], payment_intent=intent["id"])
        self.moved("charge", intent["amount"], charge)
        self.tell("payment_intent.succeeded", intent)

    def save_card(self, session_id: str, behaves: str = "ok") -> Json:
        """On the page of a session in setup mode. `behaves`: ok, processing, or a code that its bank refuses with."""
        session = self.objects[session_id]
        card = self.new(
            "pm",
            "payment_method",
            customer=session["customer"],
            behaves=behaves,
            card={"brand": "visa", "last4": "4242"},
        )
        intent = self.new("seti", "setup_intent", payment_method=card["id"], status="succeeded")
        session.update(status="complete", setup_intent=intent["id"], url=None)
        self.tell("checkout.session.completed", session)
        return card

    def leave(self, session_id: str) -> None:
        session = self.objects[session_id]
        session.update(status="expired", url=None)
        self.tell("checkout.session.expired", session)

    def dispute(self, intent_id: str) -> Json:
        intent = self.objects[intent_id]
        dispute = self.new(
            "dp", "dispute", amount=intent["amount"], payment_intent=intent_id, status="needs_response"
        )
        self.moved("adjustment", -intent["amount"], dispute)
        self.tell("charge.dispute.created", dispute)
        self.tell("charge.dispute.funds_withdrawn", dispute)
        return dispute

    def win_dispute(self, dispute_id: str) -> None:
        dispute = self.objects[dispute_id]
        dispute["status"] = "won"
        self.moved("adjustment", dispute["amount"], dispute)
        self.tell("charge.dispute.funds_reinstated", dispute)
        self.tell("charge.dispute.closed", dispute)

    def lose_dispute(self, dispute_id: str) -> None:
        dispute = self.objects[dispute_id]
        dispute["status"] = "lost"
        self.tell("charge.dispute.closed", dispute)

    def bounce_refund(self, refund_id: str) -> None:
        refund = self.objects[refund_id]
        refund["status"] = "failed"
        self.moved("refund_failure", refund["amount"], refund)
        self.tell("refund.failed", refund)
        self.tell("refund.updated", refund)

    # What owners and their banks do

    def onboard(self, account_id: str, status: str = "active", code: str | None = None) -> None:
        account = self.objects[account_id]
        capability = account["configuration"]["recipient"]["capabilities"]["stripe_balance"][
            "stripe_transfers"
        ]
        details = [{"code": code, "resolution": "provide_info"}] if code else []
        capability.update(status=status, status_details=details)

        self.tell_thin("v2.core.account[configuration.recipient].capability_status_updated", account)

    def close(self, account_id: str) -> None:
        self.objects[account_id]["closed"] = True
        self.tell_thin("v2.core.account.closed", self.objects[account_id])

    def bank_takes(self, payout_id: str) -> None:
        payout = self.objects[payout_id]
        payout["status"] = "paid"
        self.tell("payout.paid", payout, account=payout["account"])

    def bank_refuses(self, payout_id: str, code: str = "account_closed") -> None:
        payout = self.objects[payout_id]
        payout.update(status="failed", failure_code=code)
        self.account_cents[payout["account"]] += payout["amount"]
        self.tell("payout.failed", payout, account=payout["account"])

    def reverse(self, transfer_id: str, cents: int | None = None) -> None:
        transfer = self.objects[transfer_id]
        taken = transfer["amount"] if cents is None else cents
        transfer["amount_reversed"] += taken
        transfer["reversed"] = transfer["amount_reversed"] == transfer["amount"]
        self.account_cents[transfer["destination"]] -= taken
        reversal = self.new("trr", "transfer_reversal", amount=taken, transfer=transfer_id)
        self.moved("transfer_refund", taken, reversal)
        self.tell("transfer.reversed", transfer)

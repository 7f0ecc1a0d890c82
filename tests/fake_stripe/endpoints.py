"""What each request does, after its parameters were checked as Stripe's reference states them."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.fake_stripe.world import Json, World


@dataclass
class Request:
    """`account` is the connected account that the request acts for; empty for the platform's own."""

    method: str
    path: str
    params: Json
    account: str = ""


class Refusal(Exception):
    """`began`: the endpoint had begun, so that Stripe keeps the refusal under the request's key."""

    def __init__(
        self, code: str, message: str, *, param: str = "", status: int = 400, began: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.began = status, began
        self.body: Json = {
            "error": {"type": "invalid_request_error", "code": code, "message": message, "param": param}
        }


def answer(world: World, request: Request) -> Json:
    for method, prefix, check, act in ROUTES:
        if request.method == method and _matches(prefix, request.path):
            _check_params(request, check)
            return act(world, request)
    raise Refusal(
        "resource_missing", f"Unrecognized request URL ({request.method}: {request.path})", status=404
    )


def _matches(prefix: str, path: str) -> bool:
    """An empty segment, or `*`, stands for any one."""
    wanted, given = prefix.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        want == have or (at > 0 and want in ("", "*"))
        for at, (want, have) in enumerate(zip(wanted, given, strict=True))
    )


def _check_params(request: Request, allowed: str) -> None:
    """`allowed` lists names; one with `!` must be there."""
    names = {name.rstrip("!"): name.endswith("!") for name in allowed.split()}
    for name in request.params:
        if name not in names:
            raise Refusal("parameter_unknown", f"Received unknown parameter: {name}", param=name)
    for name, required in names.items():
        if required and request.params.get(name) in (None, "", {}):
            raise Refusal("parameter_missing", f"Missing required param: {name}.", param=name)


def _cents(request: Request, name: str = "amount") -> int:
    text = str(request.params[name])
    if not text.isdecimal():
        raise Refusal("parameter_invalid_integer", f"Invalid integer: {text}", param=name)
    if int(text) < 1:
        raise Refusal(
            "parameter_invalid_integer", "This value must be greater than or equal to 1.", param=name
        )
    return int(text)


def _currency(text: str) -> str:
    if text not in ("usd", "eur"):
        raise Refusal("parameter_invalid", f"Invalid currency: {text}", param="currency")
    return text


def _known(world: World, object_id: str, kind: str) -> Json:
    found = world.objects.get(object_id)
    if found is None or found["object"] != kind:
        raise Refusal("resource_missing", f"No such {kind}: '{object_id}'", status=404)
    return found


def _session_create(world: World, request: Request) -> Json:
    if request.params["mode"] == "setup":
        return _setup_session(world, request)
    if "customer" in request.params and "customer_email" in request.params:
        raise Refusal("parameter_invalid", "You may only specify one of customer, customer_email.")
    if "line_items" not in request.params:
        raise Refusal("parameter_missing", "Missing required param: line_items.", param="line_items")
    total = 0
    for item in request.params["line_items"]:
        price = item["price_data"]
        _currency(price["currency"])
        if not price.get("product_data", {}).get("name"):
            raise Refusal("parameter_missing", "Missing required param: product_data[name].")
        total += int(price["unit_amount"]) * int(item["quantity"])
    if request.params["mode"] != "payment":
        raise Refusal("parameter_invalid", "mode must be payment here", param="mode")
    if total < 50:
        raise Refusal("amount_too_small", "The Checkout Session's total must be at least $0.50.", began=True)
    session = world.new(
        "cs_test",
        "checkout.session",
        amount_total=total,
        currency="usd",
        client_reference_id=request.params.get("client_reference_id"),
        mode="payment",
        payment_status="unpaid",
        payment_intent=None,
        status="open",
    )
    session["url"] = f"https://checkout.stripe.com/c/pay/{session['id']}"
    return session


def _setup_session(world: World, request: Request) -> Json:
    """A page that saves a card and charges nothing."""
    customer = _known(world, request.params["customer"], "customer")
    if "line_items" in request.params:
        raise Refusal("parameter_invalid", "line_items cannot be set in setup mode", param="line_items")
    if request.params.get("payment_method_types") != ["card"]:
        raise Refusal("parameter_missing", "currency is required where no payment_method_types are given")
    session = world.new(
        "cs_test",
        "checkout.session",
        mode="setup",
        customer=customer["id"],
        client_reference_id=request.params.get("client_reference_id"),
        payment_status="no_payment_required",
        setup_intent=None,
        status="open",
    )
    session["url"] = f"https://checkout.stripe.com/c/setup/{session['id']}"
    return session


def _customer_create(world: World, request: Request) -> Json:
    return world.new("cus", "customer", email=request.params.get("email"))


def _setup_intent_show(world: World, request: Request) -> Json:
    intent = dict(_known(world, request.path.rsplit("/", 1)[1], "setup_intent"))
    if "payment_method" in request.params.get("expand", []):
        intent["payment_method"] = world.objects[intent["payment_method"]]
    return intent


def _intent_create(world: World, request: Request) -> Json:
    """A payment with a saved card, confirmed at once while the buyer is away."""
    p, cents = request.params, _cents(request)
    _currency(p["currency"])
    if cents < 50:
        raise Refusal("amount_too_small", "Amount must be at least $0.50 usd", began=True)
    card = _known(world, p["payment_method"], "payment_method")
    if card["customer"] != p["customer"]:
        raise Refusal("resource_missing", "The payment method is not attached to this customer.", began=True)
    if (p.get("off_session"), p.get("confirm")) != ("true", "true"):
        raise Refusal("parameter_invalid", "off_session needs confirm", param="off_session")
    intent = world.new(
        "pi",
        "payment_intent",
        amount=cents,
        currency=p["currency"],
        customer=p["customer"],
        metadata=p.get("metadata", {}),
        status="succeeded",
    )
    if card["behaves"] == "processing":
        intent["status"] = "processing"
    elif card["behaves"] != "ok":
        intent["status"] = "requires_payment_method"
        refusal = Refusal("card_declined", "Your card was declined.", status=402, began=True)
        code = "authentication_required" if card["behaves"] == "authentication_required" else "card_declined"
        refusal.body["error"] |= {
            "type": "card_error",
            "code": code,
            "decline_code": card["behaves"],
            "payment_intent": dict(intent),
        }
        world.tell("payment_intent.payment_failed", intent)
        raise refusal
    else:
        world.charged(intent)
    return intent


def _intent_cancel(world: World, request: Request) -> Json:
    intent = _known(world, request.path.split("/")[3], "payment_intent")
    if intent["status"] in ("succeeded", "canceled", "processing"):
        raise Refusal("payment_intent_unexpected_state", f"It is {intent['status']}.", began=True)
    intent["status"] = "canceled"
    return intent


def _detach(world: World, request: Request) -> Json:
    card = _known(world, request.path.split("/")[3], "payment_method")
    card["customer"] = None
    return card


def _refund_create(world: World, request: Request) -> Json:
    intent = _known(world, request.params["payment_intent"], "payment_intent")
    cents = _cents(request)
    before = sum(
        refund["amount"]
        for refund in world.of("refund")
        if refund["payment_intent"] == intent["id"] and refund["status"] != "failed"
    )
    if any(dispute["payment_intent"] == intent["id"] for dispute in world.of("dispute")):
        raise Refusal("charge_disputed", "The charge has been charged back.", began=True)
    if before + cents > intent["amount"]:
        raise Refusal("amount_too_large", "Refund amount is greater than unrefunded amount.", began=True)
    refund = world.new(
        "re",
        "refund",
        amount=cents,
        payment_intent=intent["id"],
        status="succeeded",
        metadata=request.params.get("metadata", {}),
    )
    world.moved("refund", -cents, refund)
    world.tell("refund.created", refund)
    return refund


def _account_create(world: World, request: Request) -> Json:
    p = request.params
    if not world.connects:
        refusal = Refusal("", "You can only create new accounts if you've signed up for Connect.", began=True)
        refusal.body["error"] |= {"type": "feature_not_enabled", "code": None}
        raise refusal
    country = p["identity"]["country"]
    if country != country.lower() or len(country) != 2:
        raise Refusal("invalid_country", "identity.country is a lower-case ISO code")
    asked = p["configuration"]["recipient"]["capabilities"]["stripe_balance"]["stripe_transfers"]["requested"]
    if asked is not True:
        raise Refusal("invalid_capability", "requested must be true")
    account = world.new("acct", "v2.core.account", closed=False, dashboard=p["dashboard"])
    capability = {"status": "restricted", "status_details": [{"code": "requirements_past_due"}]}
    account["configuration"] = {
        "recipient": {"capabilities": {"stripe_balance": {"stripe_transfers": capability}}}
    }
    world.account_cents[account["id"]] = 0
    return account


def _account_show(world: World, request: Request) -> Json:
    account = dict(_known(world, request.path.rsplit("/", 1)[1], "v2.core.account"))
    if "configuration.recipient" not in request.params.get("include", []):
        account["configuration"] = None  # as the real one leaves it out unless asked
    return account


def _account_link(world: World, request: Request) -> Json:
    _known(world, request.params["account"], "v2.core.account")
    if not request.params["use_case"]["account_onboarding"]["refresh_url"].startswith("http"):
        raise Refusal("url_invalid", "Not a valid URL", param="refresh_url")
    return {
        "object": "v2.core.account_link",
        "url": f"https://connect.stripe.com/setup/{request.params['account']}",
    }


def _balance_settings(world: World, request: Request) -> Json:
    account = _known(world, request.account, "v2.core.account")
    account["schedule"] = request.params["payments"]["payouts"]["schedule"]["interval"]
    return {"object": "balance_settings", "payments": request.params["payments"]}


def _transfer_create(world: World, request: Request) -> Json:
    cents = _cents(request)
    _currency(request.params["currency"])
    account = _known(world, request.params["destination"], "v2.core.account")
    if account["closed"]:
        raise Refusal("account_closed", "The destination account is closed.", began=True)
    capabilities = account["configuration"]["recipient"]["capabilities"]
    if capabilities["stripe_balance"]["stripe_transfers"]["status"] != "active":
        raise Refusal("insufficient_capabilities_for_transfer", "The account lacks a capability.", began=True)
    if cents > world.balance_cents:
        raise Refusal("balance_insufficient", "You have insufficient available funds.", began=True)
    arrived = world.new("txn", "balance_transaction.of_account", net=cents, currency="usd")
    arrived["available_on"] = world.arrives_after_s
    payment = world.new(
        "py", "charge", amount=cents, account=account["id"], balance_transaction=arrived["id"]
    )
    transfer = world.new(
        "tr",
        "transfer",
        amount=cents,
        amount_reversed=0,
        reversed=False,
        currency="usd",
        destination=account["id"],
        destination_payment=payment["id"],
        transfer_group=request.params.get("transfer_group"),
        metadata=request.params.get("metadata", {}),
    )
    world.account_cents[account["id"]] += cents
    world.moved("transfer", -cents, transfer)
    world.tell("transfer.created", transfer)
    return transfer


def _charge_show(world: World, request: Request) -> Json:
    payment = dict(_known(world, request.path.rsplit("/", 1)[1], "charge"))
    if payment.get("account", "") != request.account:
        raise Refusal("resource_missing", "No such charge", status=404)
    if "balance_transaction" in request.params.get("expand", []):
        payment["balance_transaction"] = world.objects[payment["balance_transaction"]]
    return payment


def _payout_create(world: World, request: Request) -> Json:
    cents = _cents(request)
    account = _known(world, request.account, "v2.core.account")
    if account.get("schedule") != "manual":
        raise Refusal("payouts_not_allowed", "Payouts of this account are automatic.", began=True)
    if account["closed"]:
        raise Refusal("account_closed", "The account is closed.", status=403, began=True)
    if cents > world.account_cents[account["id"]]:
        raise Refusal("balance_insufficient", "You have insufficient funds in your account.", began=True)
    world.account_cents[account["id"]] -= cents
    return world.new(
        "po",
        "payout",
        amount=cents,
        currency=_currency(request.params["currency"]),
        status="pending",
        account=account["id"],
        metadata=request.params.get("metadata", {}),
    )


def _listing(kind: str, **by: str) -> Callable[[World, Request], Json]:
    """Newest first, in pages. `by` names the parameters that choose, and the field each one is compared with."""

    def act(world: World, request: Request) -> Json:
        found = [
            made
            for made in reversed(world.of(kind))
            if all(
                made.get(name) == request.params[param]
                for param, name in by.items()
                if param in request.params
            )
            and (kind != "payout" or made["account"] == request.account)
        ]
        since = int((request.params.get("created") or {}).get("gte", 0))
        found = [made for made in found if made["created"] >= since]
        if after := request.params.get("starting_after"):
            ids = [made["id"] for made in found]
            found = found[ids.index(after) + 1 :]
        limit = int(request.params.get("limit", 10))
        page = [_with_source(world, made) for made in found[:limit]]
        return {"object": "list", "data": page, "has_more": len(found) > limit, "url": request.path}

    return act


def _with_source(world: World, made: Json) -> Json:
    return {**made, "source": world.objects[made["source"]]} if "source" in made else made


Route = tuple[str, str, str, Callable[[World, Request], Json]]
ROUTES: list[Route] = [
    (
        "POST",
        "/v1/checkout/sessions",
        "mode! line_items success_url! cancel_url client_reference_id customer customer_email payment_intent_data "
        "payment_method_types metadata",
        _session_create,
    ),
    ("POST", "/v1/customers", "email metadata", _customer_create),
    ("GET", "/v1/setup_intents/", "expand", _setup_intent_show),
    (
        "POST",
        "/v1/payment_intents",
        "amount! currency! customer payment_method payment_method_types off_session confirm description "
        "receipt_email metadata",
        _intent_create,
    ),
    ("GET", "/v1/payment_intents", "customer limit", _listing("payment_intent", customer="customer")),
    ("POST", "/v1/payment_intents/*/cancel", "cancellation_reason", _intent_cancel),
    ("POST", "/v1/payment_methods/*/detach", "", _detach),
    ("POST", "/v1/refunds", "payment_intent! amount! reason metadata", _refund_create),
    ("GET", "/v1/refunds", "payment_intent limit", _listing("refund", payment_intent="payment_intent")),
    (
        "POST",
        "/v2/core/accounts",
        "contact_email! dashboard! identity! configuration! defaults! include metadata",
        _account_create,
    ),
    ("GET", "/v2/core/accounts/", "include", _account_show),
    ("POST", "/v2/core/account_links", "account! use_case!", _account_link),
    ("POST", "/v1/balance_settings", "payments!", _balance_settings),
    (
        "POST",
        "/v1/transfers",
        "amount! currency! destination! transfer_group metadata description",
        _transfer_create,
    ),
    ("GET", "/v1/transfers", "transfer_group limit", _listing("transfer", transfer_group="transfer_group")),
    ("GET", "/v1/charges/", "expand", _charge_show),
    ("POST", "/v1/payouts", "amount! currency! metadata", _payout_create),
    ("GET", "/v1/payouts", "limit", _listing("payout")),
    (
        "GET",
        "/v1/balance_transactions",
        "created limit starting_after expand",
        _listing("balance_transaction"),
    ),
]

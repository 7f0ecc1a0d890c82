"""The HTTP of the fake Stripe: who asks, under which key, what goes wrong on the way, and signed events back."""

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from tests.fake_stripe.endpoints import Refusal, Request, answer
from tests.fake_stripe.world import Json, World

SECRET_KEY = "sk_test_of_nobody"
WEBHOOK_SECRET = "whsec_of_nobody"


@dataclass
class Fault:
    """What goes wrong with the next requests to `path`.

    `lost`: nothing is done, no answer. `done`: it is done, the answer is lost. `error`: a 500, and Stripe keeps it
    under the key, as it does. `limited`: a 429. `slow`: done, after `seconds`.
    """

    path: str
    kind: Literal["lost", "done", "error", "limited", "slow"]
    times: int = 1
    seconds: float = 0.0


@dataclass
class FakeStripe:
    """Use as a context manager. `requests` is every request that changed something or tried to."""

    world: World = field(default_factory=World)
    faults: list[Fault] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    on_request: Callable[[], None] = lambda: None
    _kept: dict[str, tuple[str, int, Json]] = field(default_factory=dict)
    _told: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __enter__(self) -> "FakeStripe":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def forget_keys(self) -> None:
        """As after a day."""
        self._kept.clear()

    # Requests

    def respond(self, request: Request, key: str) -> tuple[int, Json] | None:
        """Status and body; None for an answer that is lost."""
        with self._lock:
            if request.method == "POST":
                self.requests.append(request)
            fault = self._fault_of(request)
            if fault is not None and fault.kind == "lost":
                return None
            if fault is not None and fault.kind == "limited":
                return 429, {"error": {"code": "rate_limit", "message": "Too many requests."}}
            status, body = self._kept_or_done(
                request, key, broken=fault is not None and fault.kind == "error"
            )
        if fault is not None and fault.kind == "slow":
            time.sleep(fault.seconds)
        return None if fault is not None and fault.kind == "done" else (status, body)

    def _kept_or_done(self, request: Request, key: str, *, broken: bool) -> tuple[int, Json]:
        same = json.dumps([request.path, request.account, request.params], sort_keys=True)
        if request.method == "POST" and key in self._kept:
            asked, status, body = self._kept[key]
            if asked != same:
                words = "Keys for idempotent requests can only be used with the same parameters."
                return 400, {"error": {"type": "idempotency_error", "message": words}}
            return status, body
        keep = True
        try:
            if broken:
                status, body = 500, {"error": {"type": "api_error", "message": "Something went wrong."}}
            else:
                status, body = 200, json.loads(json.dumps(answer(self.world, request)))
        except Refusal as refusal:
            status, body, keep = refusal.status, refusal.body, refusal.began
        if keep and request.method == "POST":
            self._kept[key] = (same, status, body)
        return status, body

    def _fault_of(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.path == request.path and fault.times > 0 and request.method == "POST":
                fault.times -= 1
                return fault
        return None

    # Events

    def untold(self) -> list[Json]:
        """The events since the last call, as Stripe would send them now."""
        events = self.world.events[self._told :]
        self._told = len(self.world.events)
        return events

    def deliver(self, client: Client, events: list[Json] | None = None) -> list[int]:
        """Send events (those not sent yet, if none are named) to the site; returns the statuses it answered with."""
        return [send(client, event) for event in (self.untold() if events is None else events)]


def send(client: Client, event: Json, *, secret: str = WEBHOOK_SECRET, signed_at: float | None = None) -> int:
    body = json.dumps(event)
    header = signature(body, secret=secret, signed_at=time.time() if signed_at is None else signed_at)
    response = client.post(
        "/stripe/webhook/", body, content_type="application/json", headers={"Stripe-Signature": header}
    )
    return int(response.status_code)


def signature(body: str, *, secret: str, signed_at: float) -> str:
    """Stripe-Signature: HMAC-SHA256 over `<timestamp>.<body>`."""
    moment = int(signed_at)
    digest = hmac.new(secret.encode(), f"{moment}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def _handler_of(stripe: FakeStripe) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet: the client would wait for the second

        def do_GET(self) -> None:
            self._handle(form_decode(urlsplit(self.path).query))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            is_json = self.headers.get("Content-Type", "").startswith("application/json")
            self._handle(json.loads(body) if is_json else form_decode(body))

        def _handle(self, params: Json) -> None:
            stripe.on_request()
            request = Request(
                self.command, urlsplit(self.path).path, params, self.headers.get("Stripe-Account") or ""
            )
            if self.headers["Authorization"] != f"Bearer {SECRET_KEY}":
                self._answer(401, {"error": {"type": "invalid_request_error", "message": "Invalid API Key."}})
                return
            responded = stripe.respond(request, self.headers.get("Idempotency-Key") or "")
            if responded is None:
                self.close_connection = True
                return
            self._answer(*responded)

        def _answer(self, status: int, body: Json) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Request-Id", "req_fake")
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def form_decode(text: str) -> Json:
    """`a[b][0]=c` as Stripe reads it: nested objects, and lists where all names are numbers."""
    tree: Json = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        path = re.findall(r"[^\[\]]+", name)
        place = tree
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = value
    decoded = _lists(tree)
    assert isinstance(decoded, dict)
    return decoded


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _lists(value) for name, value in tree.items()}
    if inner and all(name.isdecimal() for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner

"""The payouts API: parse, call one service or selector, answer."""

import csv
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.permissions import HasScope
from accounts.api.serializers import ErrorBody
from accounts.api.views import parsed
from accounts.requests import person
from billing import selectors
from billing.api import serializers as s
from billing.api.throttles import PayoutReads, PayoutWrites
from billing.domain.capability import in_words
from billing.errors import CurrencyUnknown
from billing.models import Earning, Payout
from billing.services import payout_request
from common.api import SteadyCursorPagination
from common.clock import utc_now

CSV_COLUMNS = ("day", "device_id", "charges", "gross_microusd", "deducted_microusd", "net_microusd")
CSV_HEADINGS = ("day", "device_id", "charges", "gross_microusd", "fee_microusd", "net_microusd")
KEY = OpenApiParameter(
    s.KEY_HEADER,
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="asks once, however often it is sent",
)


def failures(*codes: int) -> dict[int, OpenApiResponse]:
    """The answers other than success that a view's description names."""
    words = {
        400: "An input cannot be used; `field` names it.",
        401: "Not signed in.",
        402: "Not as much is available; the rest is still maturing.",
        403: "The token lacks the scope, or the owner's payouts are frozen.",
        404: "There is no such object of yours.",
        409: "The account cannot be paid to yet, or the key was used for another amount.",
        429: "Asked too often; Retry-After says how many seconds to wait.",
    }
    return {code: OpenApiResponse(ErrorBody, description=words[code]) for code in (*codes, 401, 403, 429)}


class PayoutsApi(APIView):
    permission_classes = [HasScope]
    required_scopes = ("payouts:read", "payouts:write")
    throttle_classes = [PayoutReads, PayoutWrites]


class BalancesView(PayoutsApi):
    @extend_schema(operation_id="payouts_balances", responses={200: s.BalancesOut, **failures()})
    def get(self, request: Request) -> Response:
        """What of an owner's earnings matures, can be paid out, is on the way, and was paid."""
        return Response(s.BalancesOut(selectors.earnings_balances(person(request), now=utc_now())).data)


class ByDay(SteadyCursorPagination):
    page_size = 100
    ordering = ("-day", "device_id")


class EarningsView(PayoutsApi, ListAPIView[Earning]):
    serializer_class = s.EarningOut
    pagination_class = ByDay

    def get_queryset(self) -> Any:
        return _earnings(self.request)

    @extend_schema(
        operation_id="payouts_earnings",
        parameters=[s.EarningsQuery],
        responses={200: s.EarningOut(many=True), **failures(400)},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Earnings by day and device, newest first."""
        return super().get(request, *args, **kwargs)


class EarningsCsvView(PayoutsApi):
    @extend_schema(
        operation_id="payouts_earnings_csv",
        parameters=[s.EarningsQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR, **failures(400)},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """The same as a CSV file, all of it."""
        headers = {"Content-Disposition": 'attachment; filename="earnings.csv"'}
        rows = _csv_lines(_earnings(request))
        return StreamingHttpResponse(rows, content_type="text/csv; charset=utf-8", headers=headers)


class Newest(SteadyCursorPagination):
    page_size = 50
    ordering = ("-created_at", "-id")


class PayoutsView(PayoutsApi, ListAPIView[Payout]):
    serializer_class = s.PayoutOut
    pagination_class = Newest

    def get_queryset(self) -> Any:
        return selectors.payouts_of(person(self.request))

    @extend_schema(operation_id="payouts_list", responses={200: s.PayoutOut(many=True), **failures()})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="payouts_create",
        parameters=[KEY],
        request=s.PayoutIn,
        responses={201: s.PayoutDetailOut, **failures(400, 402, 409)},
    )
    def post(self, request: Request) -> Response:
        """Takes the amount out of the available earnings and has it sent; the same key asks once."""
        form = parsed(s.PayoutIn(data=request.data))
        if form["currency"] != "usd":
            raise CurrencyUnknown("Earnings are kept in USD alone: ask for usd.", field="currency")
        payout = payout_request(
            user=person(request),
            amount_microusd=form["amount_microusd"],
            idempotency_key=request.headers.get(s.KEY_HEADER, ""),
        )
        return Response(s.PayoutDetailOut(payout).data, status=status.HTTP_201_CREATED)


class PayoutView(PayoutsApi):
    @extend_schema(operation_id="payouts_show", responses={200: s.PayoutDetailOut, **failures(404)})
    def get(self, request: Request, payout_id: UUID) -> Response:
        """One payout with its story, step by step."""
        return Response(s.PayoutDetailOut(selectors.payout_of(person(request), payout_id)).data)


class EstimateView(PayoutsApi):
    @extend_schema(
        operation_id="payouts_estimate",
        parameters=[s.EstimateQuery],
        responses={200: s.EstimateOut, **failures(400)},
    )
    def get(self, request: Request) -> Response:
        """Gross, fee and net of a payout, and whether it would be taken now. Nothing is reserved."""
        query = parsed(s.EstimateQuery(data=request.query_params))
        estimate = selectors.payout_estimate(
            person(request), amount_microusd=query.get("amount_microusd"), now=utc_now()
        )
        return Response(s.EstimateOut(estimate).data)


class AccountView(PayoutsApi):
    @extend_schema(operation_id="payouts_account", responses={200: s.AccountOut, **failures()})
    def get(self, request: Request) -> Response:
        """The owner's account at Stripe, in words."""
        account = selectors.payout_account_of(person(request))
        if account is None:
            words = "Open an account for payouts on the payouts page: choose your country first."
            body = {"country": None, "status": "none", "words": words, "weekly": False, "weekly_note": ""}
        else:
            body = {
                "country": account.country,
                "status": account.transfers_status,
                "words": in_words(account.transfers_status, account.status_code),
                "weekly": account.weekly,
                "weekly_note": account.weekly_note,
            }
        return Response(s.AccountOut(body).data)


def _earnings(request: Request) -> Any:
    query = parsed(s.EarningsQuery(data=request.query_params))
    return selectors.earnings_by_day(
        person(request), since=query.get("since"), until=query.get("until"), device_id=query.get("device")
    )


class _Echo:
    """A file that hands each line back as it is written."""

    def write(self, line: str) -> str:
        return line


def _csv_lines(rows: Any) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(CSV_HEADINGS)
    for row in rows.iterator(chunk_size=1_000):
        yield writer.writerow([row[column] for column in CSV_COLUMNS])

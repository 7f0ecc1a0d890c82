"""The one mapping from error codes to HTTP, for the REST API and for pages.

Apps raise `NightshiftError`s that know nothing of HTTP; whoever adds an error adds its code here (a test holds that
every code is mapped). A response body is always `{"code", "message", "field"}`.
"""

from typing import Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from common.errors import NightshiftError

STATUS_BY_CODE: dict[str, int] = {
    "internal": 500,
    # accounts
    "invalid_email": 400,
    "email_taken": 409,
    "weak_password": 400,
    "unknown_time_zone": 400,
    "invalid_address": 400,
    "invalid_name": 400,
    "unknown_scope": 400,
    "invalid_public_key": 400,
    "invalid_device_facts": 400,
    "invalid_policy": 400,
    "invalid_windows": 400,
    "api_token_not_found": 404,
    "device_not_found": 404,
    "limit_reached": 409,
    "pairing_code_wrong": 400,
    "pairing_code_expired": 410,
    "pairing_code_used": 410,
    "device_already_paired": 409,
    "too_many_pairing_attempts": 429,
    "too_many_sign_ups": 429,
    "api_token_unknown": 401,
    "api_token_revoked": 401,
    # blobs
    "blob_hash_mismatch": 422,
    "blob_not_found": 404,
    "blob_token_expired": 403,
    "blob_token_invalid": 403,
    "blob_too_big": 413,
    "range_not_satisfiable": 416,
    "upload_gap": 409,
    "upload_header_invalid": 400,
    "upload_too_big": 413,
    "upload_used_up": 403,
    # billing
    "amount_invalid": 400,
    "hold_not_found": 404,
    "hold_released": 409,
    "idempotency_conflict": 409,
    "idempotency_key_invalid": 400,
    "insufficient_funds": 402,
    "not_an_operator": 403,
    "rate_invalid": 400,
    "reason_invalid": 400,
    "estimate_invalid": 400,
    "adjustment_invalid": 400,
    "adjustment_not_found": 404,
    "second_operator_needed": 403,
    "unmatched_invalid": 409,
    "payout_gone": 409,
    "wallet_frozen": 403,
    "consent_missing": 400,
    "top_up_not_found": 404,
    "top_up_not_refundable": 409,
    "country_unsupported": 400,
    "currency_unknown": 400,
    "earnings_immature": 402,
    "hook_invalid": 400,
    "hook_limit": 409,
    "hook_not_found": 404,
    "payout_account_missing": 409,
    "payout_account_refused": 409,
    "payout_account_unready": 409,
    "payout_not_found": 404,
    "payouts_frozen": 403,
    "stripe_not_configured": 503,
    "stripe_refused": 409,
    "stripe_unavailable": 503,
    "webhook_too_large": 413,
    "webhook_unreadable": 400,
    "webhook_unsigned": 400,
    # scheduler
    "dispatcher_lock_lost": 503,
    "diverged": 422,
    "invalid_transition": 500,
    "round_unreadable": 500,
    "run_invalid": 400,
    "run_not_found": 404,
    # marketplace
    "budget_too_small": 400,
    "dataset_dtype": 400,
    "dataset_in_use": 409,
    "dataset_labels": 400,
    "dataset_limit": 409,
    "dataset_not_finite": 400,
    "dataset_not_found": 404,
    "dataset_shape": 400,
    "dataset_too_large": 413,
    "dataset_unreadable": 400,
    "dataset_unsafe": 400,
    "invoice_not_found": 404,
    "job_conflict": 409,
    "job_invalid": 400,
    "job_not_found": 404,
    "quote_expired": 410,
    "quoted_job_limit": 409,
    "model_does_not_fit": 400,
    "model_invalid": 400,
    "model_not_ready": 409,
}


def status_of(error: NightshiftError) -> int:
    return STATUS_BY_CODE.get(error.code, 500)


def error_body(error: NightshiftError) -> dict[str, Any]:
    return _body(error.code, error.message, error.field)


def _body(code: str, message: str, field: str | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "field": field}


def json_error(error: NightshiftError) -> JsonResponse:
    return JsonResponse(error_body(error), status=status_of(error))


def api_exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception hook: every failure of the API has the same shape."""
    if isinstance(exc, NightshiftError):
        return Response(error_body(exc), status=status_of(exc))
    if isinstance(exc, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        message = "The request has more bytes or fields than are taken. Send less in one request."
        return Response(_body("request_too_big", message), status=413)
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, exceptions.ValidationError):
        field, message = _first_problem(exc.detail)
        response.data = _body("invalid_input", message, field)
    elif isinstance(exc, exceptions.APIException):
        response.data = _body(str(exc.get_codes()), str(exc.detail))
    else:  # Http404 and PermissionDenied of Django itself
        code = "not_found" if response.status_code == 404 else "forbidden"
        response.data = _body(code, "There is no such object.")
    return response


def _first_problem(detail: Any, field: str | None = None) -> tuple[str | None, str]:
    """The first field in DRF's nested validation detail, and a sentence that names it."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        of_all = name == "non_field_errors"
        return _first_problem(inner, field if of_all else f"{field}.{name}" if field else str(name))
    if isinstance(detail, list):
        return _first_problem(detail[0], field)
    return field, f"{field}: {str(detail)[:1].lower()}{str(detail)[1:]}" if field else str(detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler404`: a page for people, the usual body for programs."""
    if _is_for_programs(request):
        return JsonResponse(_body("not_found", "There is no such address."), status=404)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`."""
    if _is_for_programs(request):
        return JsonResponse(_body("internal", "Our fault: the server failed. Try again later."), status=500)
    return defaults.server_error(request)


def _is_for_programs(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/blobs/"))


class DomainErrorMiddleware:
    """Turns a `NightshiftError` that a page or a plain view let through into its HTTP status."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self.get_response(request)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, NightshiftError):
            return None
        if "text/html" in request.headers.get("Accept", ""):
            return render(request, "error.html", {"error": exception}, status=status_of(exception))
        return json_error(exception)

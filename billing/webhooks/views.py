"""Where Stripe sends its events. Whatever is stored is answered with 200: what is not handled yet is our business."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from billing.webhooks.handling import event_handle
from billing.webhooks.receiving import MAX_BODY_BYTES, event_receive
from common.clock import utc_now


@csrf_exempt
@require_POST
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    now = utc_now()
    body = request.read(MAX_BODY_BYTES + 1)  # never more, whatever the sender says of its length
    event = event_receive(body=body, signature=request.headers.get("Stripe-Signature", ""), now=now)
    event_handle(event_pk=event.pk, now=now)
    return HttpResponse(status=200)

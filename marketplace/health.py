"""`/healthz/`: whether the site can do its work, for load balancers and for whoever is woken at night."""

from django.db import Error as DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from common.clock import utc_now
from scheduler.lock import lock_is_held

HEALTHY, ILL = "ok", "down"


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """200 if the database answers and some process dispatches work, else 503; the body says which does not."""
    try:
        dispatching = lock_is_held(now=utc_now())
    except DatabaseError:
        return JsonResponse({"database": ILL, "dispatcher": "unknown"}, status=503)
    body = {"database": HEALTHY, "dispatcher": HEALTHY if dispatching else ILL}
    return JsonResponse(body, status=200 if dispatching else 503)

"""What every page answers with: times in the reader's zone, and a policy that lets nothing foreign run."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from accounts.models import User

GetResponse = Callable[[HttpRequest], HttpResponseBase]

# Pages carry no script, style or image but our own; charts are markup. `data:` is for the ticks of form controls.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# Swagger UI is our own copy, but sets styles in its markup.
API_DOCS_POLICY = PAGE_POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")


class ViewerTimeZoneMiddleware:
    """Shows times in the time zone of the person who is logged in; UTC to everyone else."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        zone = ZoneInfo(request.user.time_zone) if isinstance(request.user, User) else ZoneInfo("UTC")
        with timezone.override(zone):
            return self.get_response(request)


class ContentSecurityPolicyMiddleware:
    """Names the only sources that a browser may load from: this site."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        page = request.resolver_match
        policy = API_DOCS_POLICY if page is not None and page.url_name == "api-docs" else PAGE_POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

"""What the views of the buyer's side share."""

from drf_spectacular.utils import OpenApiResponse
from rest_framework.views import APIView

from accounts.api.permissions import HasScope
from accounts.api.serializers import ErrorBody


class JobsApi(APIView):
    permission_classes = [HasScope]
    required_scopes = ("jobs:read", "jobs:write")


class DatasetsApi(APIView):
    permission_classes = [HasScope]
    required_scopes = ("datasets:read", "datasets:write")


def failures(*codes: int) -> dict[int, OpenApiResponse]:
    """The answers other than success that a view's description names."""
    words = {
        400: "An input cannot be used; `field` names it.",
        401: "Not signed in.",
        402: "The wallet does not hold the quote.",
        403: "The token lacks the scope.",
        404: "There is no such object of yours.",
        409: "The object's state does not allow it.",
        410: "Its time is over; make a new one.",
        413: "More than is taken; the message says how much is.",
    }
    return {code: OpenApiResponse(ErrorBody, description=words[code]) for code in (*codes, 401, 403)}

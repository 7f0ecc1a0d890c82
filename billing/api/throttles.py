"""How often one person may ask: plenty for a program that looks every second, little for one that runs wild."""

from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView


class PayoutReads(UserRateThrottle):
    scope = "payouts-read"
    rate = "600/min"

    def allow_request(self, request: Request, view: APIView) -> bool:
        return request.method != "GET" or super().allow_request(request, view)


class PayoutWrites(UserRateThrottle):
    scope = "payouts-write"
    rate = "30/min"

    def allow_request(self, request: Request, view: APIView) -> bool:
        return request.method == "GET" or super().allow_request(request, view)

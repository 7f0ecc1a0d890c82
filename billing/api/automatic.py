"""Automatic top-ups for programs: the same terms as on the page, and the same clear yes."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.permissions import HasScope
from accounts.api.views import parsed
from accounts.requests import person
from billing.api.throttles import PayoutReads, PayoutWrites
from billing.api.views import failures
from billing.domain.auto_top_ups import Terms
from billing.models import AutoTopUp
from billing.selectors import auto_top_up_of, auto_top_up_spent_microusd
from billing.services import auto_top_up_set, auto_top_up_stop
from common.clock import utc_now


class TermsIn(serializers.Serializer[Any]):
    threshold_microusd = serializers.IntegerField(help_text="top up when the wallet has less")
    amount_microusd = serializers.IntegerField(help_text="of each top-up, in whole cents")
    monthly_cap_microusd = serializers.IntegerField(help_text="all together in a month (UTC) at most")
    agreed = serializers.BooleanField(help_text="true: the buyer wants the card charged under these terms")


class AutoTopUpOut(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=AutoTopUp.State.choices)
    threshold_microusd = serializers.IntegerField(allow_null=True)
    amount_microusd = serializers.IntegerField(allow_null=True)
    monthly_cap_microusd = serializers.IntegerField(allow_null=True)
    spent_this_month_microusd = serializers.IntegerField()
    card = serializers.CharField(allow_blank=True)
    note = serializers.CharField(allow_blank=True, help_text="why it is off, or waits")
    set_up_url = serializers.CharField(allow_blank=True, help_text="where the buyer saves a card, if none is")


class AutoTopUpView(APIView):
    permission_classes = [HasScope]
    required_scopes = ("money:read", "money:write")
    throttle_classes = [PayoutReads, PayoutWrites]

    @extend_schema(operation_id="auto_top_up_show", responses={200: AutoTopUpOut, **failures()})
    def get(self, request: Request) -> Response:
        return _shown(request)

    @extend_schema(
        operation_id="auto_top_up_set", request=TermsIn, responses={200: AutoTopUpOut, **failures(400, 409)}
    )
    def put(self, request: Request) -> Response:
        """Switches it on, or changes its terms. Without a saved card, the buyer saves one at `set_up_url` first."""
        form = parsed(TermsIn(data=request.data))
        terms = Terms(form["threshold_microusd"], form["amount_microusd"], form["monthly_cap_microusd"])
        auto_top_up_set(user=person(request), terms=terms, agreed=form["agreed"])
        return _shown(request)

    @extend_schema(operation_id="auto_top_up_stop", responses={204: None, **failures()})
    def delete(self, request: Request) -> Response:
        """Switches it off and removes the card."""
        auto_top_up_stop(user=person(request), forgets_card=True)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _shown(request: Request) -> Response:
    auto = auto_top_up_of(person(request))
    body = {
        "state": auto.state if auto else AutoTopUp.State.OFF,
        "threshold_microusd": auto.threshold_microusd if auto else None,
        "amount_microusd": auto.amount_microusd if auto else None,
        "monthly_cap_microusd": auto.monthly_cap_microusd if auto else None,
        "spent_this_month_microusd": auto_top_up_spent_microusd(person(request), now=utc_now()),
        "card": auto.card if auto else "",
        "note": auto.note if auto else "",
        "set_up_url": auto.set_up_url if auto else "",
    }
    return Response(AutoTopUpOut(body).data)

"""Creates owners with earnings and a buyer in the database that the environment names, and prints who may do what.

A process of its own, since the site under test has another database than the test that drives it. The arguments are
the ids of accounts at Stripe, one for each owner.
"""

import json
import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from accounts.services import api_token_create
    from billing.models import PayoutAccount
    from common.clock import utc_now
    from tests.billing.cast import buyer
    from tests.billing.owners import earner

    call_command("migrate", verbosity=0)
    tokens = []
    for number, account_id in enumerate(sys.argv[1:]):
        owner = earner(f"owner-{number}")
        PayoutAccount.objects.create(
            user=owner,
            country="US",
            stripe_id=account_id,
            transfers_status="active",
            pays_by_hand=True,
            heard_at=utc_now(),
        )
        _, token = api_token_create(user=owner, name="test", scopes=["payouts:read", "payouts:write"])
        tokens.append(token)
    bea = buyer("bea")
    _, reads = api_token_create(user=bea, name="test", scopes=["money:read"])
    browser = Client()
    browser.force_login(bea)
    session = browser.cookies["sessionid"].value
    print(json.dumps({"owners": tokens, "reads": reads, "session": session}))

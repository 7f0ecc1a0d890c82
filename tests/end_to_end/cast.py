"""Creates the demo's people in the database that the environment names, and prints their tokens as JSON.

A process of its own, since the site under test has another database than the test that drives it.
"""

import json
import os

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
    django.setup()
    from django.core.management import call_command

    from marketplace.demo.people import create_people

    call_command("migrate", verbosity=0)
    owner, buyer = create_people()
    print(json.dumps({"owner": owner.token, "buyer": buyer.token}))

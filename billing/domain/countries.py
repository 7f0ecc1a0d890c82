"""Where owners can be paid, and the least that can be paid there.

Stripe pays recipients of a US platform in these countries; each has a least amount in its own currency (Stripe,
"Country-specific considerations for cross-border payouts"). Ours is in USD and above it, with room for the exchange
rate, so that a payout never gets stuck below a bound that its owner cannot see.
"""

from dataclasses import dataclass

from billing.errors import CountryUnsupported
from common.money import MICROUSD_PER_USD

USUAL_MINIMUM_USD = 5
_EURO = "AT BE CY DE EE ES FI FR GR HR IE IT LT LU LV MT NL PT SI SK"
_OTHERS = "AU BG CA CH CZ DK GB HU JP LI MX NO NZ PL RO SE SG US"
# Stripe's own bound is 3,000 ALL, 12,100 AMD, 200 BOB, 123,000 KHR, 23,000 CLP and 140,000 COP.
_HIGHER_MINIMUM_USD = {"AL": 40, "AM": 40, "BO": 40, "CL": 35, "CO": 45, "KH": 40}


@dataclass(frozen=True, slots=True)
class PayoutCountry:
    code: str
    minimum_microusd: int


COUNTRIES: dict[str, PayoutCountry] = {
    code: PayoutCountry(code, _HIGHER_MINIMUM_USD.get(code, USUAL_MINIMUM_USD) * MICROUSD_PER_USD)
    for code in sorted([*_EURO.split(), *_OTHERS.split(), *_HIGHER_MINIMUM_USD])
}


def payout_country(code: str) -> PayoutCountry:
    """Raises CountryUnsupported, which an owner is told before anything else is asked of them."""
    country = COUNTRIES.get(code.upper())
    if country is None:
        raise CountryUnsupported(
            f"Payouts do not reach {code[:2].upper()!r} yet. Your devices may still earn; the balance is kept "
            "for you until they do.",
            field="country",
        )
    return country

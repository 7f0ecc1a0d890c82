"""Where owners can be paid, and the least that can be paid there.

Stripe pays recipients of a US platform in these countries; each has a least amount in its own currency (Stripe,
"Country-specific considerations for cross-border payouts"). Ours is in USD and above it, with room for the exchange
rate, so that a payout never gets stuck below a bound that its owner cannot see.
"""

from dataclasses import dataclass

from billing.errors import CountryUnsupported
from common.money import MICROUSD_PER_USD

USUAL_MINIMUM_USD = 5
_NAMES = {
    "AL": "Albania", "AM": "Armenia", "AT": "Austria", "AU": "Australia", "BE": "Belgium", "BG": "Bulgaria",
    "BO": "Bolivia", "CA": "Canada", "CH": "Switzerland", "CL": "Chile", "CO": "Colombia", "CY": "Cyprus",
    "CZ": "Czechia", "DE": "Germany", "DK": "Denmark", "EE": "Estonia", "ES": "Spain", "FI": "Finland",
    "FR": "France", "GB": "United Kingdom", "GR": "Greece", "HR": "Croatia", "HU": "Hungary", "IE": "Ireland",
    "IT": "Italy", "JP": "Japan", "KH": "Cambodia", "LI": "Liechtenstein", "LT": "Lithuania", "LU": "Luxembourg",
    "LV": "Latvia", "MT": "Malta", "MX": "Mexico", "NL": "Netherlands", "NO": "Norway", "NZ": "New Zealand",
    "PL": "Poland", "PT": "Portugal", "RO": "Romania", "SE": "Sweden", "SG": "Singapore", "SI": "Slovenia",
    "SK": "Slovakia", "US": "United States",
}  # fmt: skip
# Stripe's own bound is 3,000 ALL, 12,100 AMD, 200 BOB, 123,000 KHR, 23,000 CLP and 140,000 COP.
_HIGHER_MINIMUM_USD = {"AL": 40, "AM": 40, "BO": 40, "CL": 35, "CO": 45, "KH": 40}


@dataclass(frozen=True, slots=True)
class PayoutCountry:
    code: str
    name: str
    minimum_microusd: int


COUNTRIES: dict[str, PayoutCountry] = {
    code: PayoutCountry(code, name, _HIGHER_MINIMUM_USD.get(code, USUAL_MINIMUM_USD) * MICROUSD_PER_USD)
    for code, name in sorted(_NAMES.items(), key=lambda country: country[1])
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

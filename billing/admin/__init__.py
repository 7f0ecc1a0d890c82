"""The operators' pages of money: what there is (`money`), prices, what operators correct and did (`operators`)."""

from billing.admin import money, operators, rates

__all__ = ["money", "operators", "rates"]

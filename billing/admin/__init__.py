"""The operators' pages of money: what there is (`money`), prices (`rates`), what operators correct and did."""

from billing.admin import money, operators, rates

__all__ = ["money", "operators", "rates"]

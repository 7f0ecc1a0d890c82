"""The operators' pages of money: what there is (`money`), and what operators correct and did (`operators`), prices (`rates`)."""

from billing.admin import money, operators, rates

__all__ = ["money", "operators", "rates"]

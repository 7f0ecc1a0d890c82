"""The operators' pages of money: what there is (`money`), and what operators correct and did (`operators`)."""

from billing.admin import money, operators

__all__ = ["money", "operators"]

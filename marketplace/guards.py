"""Which of the buyer's side's tables the database itself keeps from change; `billing.guards` is how."""

INVOICE_TABLES = ("marketplace_invoice", "marketplace_invoiceline")

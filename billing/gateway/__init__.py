"""The only way to Stripe: `client` speaks its API, `calls` remembers what was asked."""

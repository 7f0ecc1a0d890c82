"""Events from Stripe: checked and stored as they came (`receiving`), then handled once (`handling`)."""

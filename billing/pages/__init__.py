"""Pages of real money: what buyers pay in, what owners are paid out."""

"""What is entered into a ledger that was lost, or is behind."""

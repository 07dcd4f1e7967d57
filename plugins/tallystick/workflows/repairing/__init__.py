"""What can be done about findings, done."""

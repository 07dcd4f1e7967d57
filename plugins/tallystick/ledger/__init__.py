"""The ledger on PostgreSQL: its record of every offset, and the schema of it."""

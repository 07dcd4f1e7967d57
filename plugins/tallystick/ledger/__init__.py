"""The ledger on PostgreSQL: fulfils the Ledger port, migrates its schema."""

"""What dead attempts hold, settled: proven and committed, or given up."""

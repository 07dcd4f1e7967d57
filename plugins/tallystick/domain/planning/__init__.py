"""Planning: what a look at the broker changes, and what a run lands in which batches."""

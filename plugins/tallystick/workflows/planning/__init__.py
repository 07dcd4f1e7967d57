"""From a look at the broker to a frozen plan."""

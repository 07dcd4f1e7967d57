"""Pure values and decisions: no clock, no log, no I/O; the standard library and errors only."""

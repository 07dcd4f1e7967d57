"""Logs: their generations, what a broker showed of them, and if they are still the same."""

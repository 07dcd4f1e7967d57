"""Builds the adapters behind the ports from settings and connections, and reads what has landed."""

"""Adapters to those who are told: the notifiers that feeds name."""

"""Ledgers: what is spent and what is left, each undone by one `Transaction`."""

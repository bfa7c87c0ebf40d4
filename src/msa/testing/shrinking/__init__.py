"""Failing modules made small."""

"""Turning decisions into a module: copies, memory spaces, a new schedule."""

"""Choosing the structure privately: the contract of selectors, and how one is run against a session."""

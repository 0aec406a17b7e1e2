"""Counting: exact statistics of records."""

"""The only door to the records."""

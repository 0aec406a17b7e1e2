"""Formats of public metadata."""

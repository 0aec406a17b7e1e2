"""Exact inference on a junction tree."""

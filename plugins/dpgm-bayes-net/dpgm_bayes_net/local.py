"""Conditional tables each from its own noisy counts, after all tables were made to agree; no inference."""

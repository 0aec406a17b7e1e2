"""Small helpers that know nothing of privacy or models."""

"""Learned models and queries about them."""

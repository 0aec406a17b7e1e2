"""Releases: noisy tables with everything a reader must know. Safe to publish."""

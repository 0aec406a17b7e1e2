"""Releases: noisy tables and answers of private queries."""

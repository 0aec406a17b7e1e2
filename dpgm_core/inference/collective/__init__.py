"""Collective inference: hidden true tables, given noisy ones."""

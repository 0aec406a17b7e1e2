"""Inference over hidden true tables, given noisy ones."""

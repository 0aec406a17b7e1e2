"""Inference over the hidden true tables given a noisy release: the collective graphical model's E-step."""

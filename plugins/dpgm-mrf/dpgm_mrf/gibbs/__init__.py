"""Gibbs sampling for models too dense for a junction tree."""

"""Curators: they count records, charge the budget and add noise."""

"""Experiments over installed components, on records that are drawn and never real."""

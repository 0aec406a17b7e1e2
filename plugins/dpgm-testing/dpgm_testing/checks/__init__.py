"""Checks of the conformance kit, one module per kind of component."""

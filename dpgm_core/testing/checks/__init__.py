"""The named checks, one module for each kind of component."""

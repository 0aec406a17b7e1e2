"""The registry of components, their options, the components of core itself, and new plugins."""

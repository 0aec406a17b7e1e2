"""Components: the registry of plugins, and their options."""

"""From names and plain values to objects: the registry, options, what core itself offers, new plugins."""

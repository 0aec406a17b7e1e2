"""A run from records to a model: what it does, what it would cost, and how far its model is from records."""

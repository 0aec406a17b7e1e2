"""What was learned, and what can be asked of it."""

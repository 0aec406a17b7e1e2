"""What one column's values mean: how raw values match labels, which numbers or dates they are, and what is found of
them privately."""

"""The report that a steward brings to a review board: one page, made of released things only."""

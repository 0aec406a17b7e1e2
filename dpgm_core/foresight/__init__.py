"""Told before a run starts: what it would cost, how accurate it would be, and what would be refused."""

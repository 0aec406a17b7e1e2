"""Privacy: exact amounts, budgets, sensitivities, terms and their accounting."""

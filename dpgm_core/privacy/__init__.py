"""What is protected, and what it costs: exact amounts, budgets, sensitivities, terms and their accounting."""

"""The package that reads records and charges budgets."""

"""Durable records of what has been spent on a data set."""

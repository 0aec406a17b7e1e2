"""The durable record of what has been spent on a data set."""

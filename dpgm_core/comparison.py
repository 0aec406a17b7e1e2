"""Two or more releases, models or synthetic files side by side."""

"""Other people's files: UAI and BIF."""

"""Other people's file formats: UAI competition files and BIF networks."""

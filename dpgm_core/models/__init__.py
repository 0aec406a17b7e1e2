"""Models: learned distributions, their queries, samples and files."""

"""What learners share: their contract, a run against a curator, likelihood, simulation, bootstrap."""

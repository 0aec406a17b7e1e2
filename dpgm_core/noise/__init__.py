"""From a sensitivity and a budget to calibrated noise, and its exact samplers."""

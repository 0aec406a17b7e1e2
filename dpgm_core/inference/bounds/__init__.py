"""Certified bounds on log Z of models too wide for one junction tree, from exact inference on parts that fit."""

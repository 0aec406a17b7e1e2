"""Inference engines on one fixed structure: exact (`junction_tree`) and approximate (`loopy_bp`)."""

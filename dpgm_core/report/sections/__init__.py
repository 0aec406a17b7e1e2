"""The sections of a report, each from the same material: one module, one section."""

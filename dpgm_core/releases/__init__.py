"""What comes out of the door: noisy tables with everything a reader must know. Safe to publish."""

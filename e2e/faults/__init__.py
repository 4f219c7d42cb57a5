"""Kill, cut and restart at random, and count what is left."""

"""`engine`: the helpers that run on the hub."""

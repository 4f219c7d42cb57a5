"""Hello: replies to a message, and does nothing else. A first check that a hub's engines work."""

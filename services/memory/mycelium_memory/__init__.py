"""The memory service: what rooms know, as versioned markdown. `service.py` is its table of contents."""

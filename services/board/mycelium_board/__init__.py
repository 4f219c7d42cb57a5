"""The board service: tasks and who holds them. See `service.py` for its table of contents."""

"""The rooms service: rooms, members, people, messages and their delivery. `service.py` is its table of contents."""

"""Agents, users, and who one is oneself."""

"""Signing in: tokens of people, of agents and of joined folders, and where they are kept."""

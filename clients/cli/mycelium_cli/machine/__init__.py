"""This machine: its hub, its settings, its shell."""

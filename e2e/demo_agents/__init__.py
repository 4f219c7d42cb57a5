"""The agents of the demo: each knows nothing but the `mycelium` command."""

"""The one-machine hub: starts NATS and the services, keeps them running, and leaves nothing behind when it dies."""

__version__ = "0.1.0"

"""What every service stands on: bus, log, projector, timers, names, errors, settings, telemetry. Imports no service."""

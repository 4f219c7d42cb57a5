"""The engine service: helpers that run on the hub, by workflows that outlive any process."""

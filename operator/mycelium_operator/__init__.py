"""The operator: makes what the objects of a cluster ask for, through the gateway."""

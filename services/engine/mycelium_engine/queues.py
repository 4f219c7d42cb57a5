"""The task queues of Temporal: models are slow, so what they keep busy keeps nothing else waiting."""

ENGINE = "engine"
MODELS = "engine-models"

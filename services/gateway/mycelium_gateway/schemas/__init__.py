"""One module a noun: what requests may hold and what answers look like. The OpenAPI document is made of these."""

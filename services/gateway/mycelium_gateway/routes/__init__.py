"""One module a noun: each route checks its body, builds a request for the bus and shapes the answer."""

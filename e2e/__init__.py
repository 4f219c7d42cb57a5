"""The product seen from outside: through the command line, over HTTP, as processes that get killed."""

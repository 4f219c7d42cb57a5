"""The only door of a hub: HTTP to requests on the bus, facts to live streams, long waits. Holds no state."""

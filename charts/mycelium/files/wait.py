"""Before a service begins: wait until one of the servers that it is told of takes a connection."""

import os
import socket
import time
from urllib.parse import urlsplit

places = [urlsplit(server) for server in os.environ["MYCELIUM_NATS_SERVERS"].split(",")]
for attempt in range(1_000_000):
    place = places[attempt % len(places)]
    try:
        socket.create_connection((place.hostname or "", place.port or 4222), timeout=2).close()
    except OSError as error:
        if attempt % 20 == 0:
            print(f"waiting for {place.hostname}: {error}", flush=True)
        time.sleep(0.5)
    else:
        break

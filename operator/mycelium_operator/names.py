"""Every name that the operator has in common with the cluster: kinds, labels, conditions and their reasons."""

GROUP = "mycelium.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
ROOM, ROOMS = "Room", "rooms"

MANAGER = "mycelium-operator"  # who owns the fields that are applied, and reports events
HANDLE = "operator"  # who the operator is in the hub, and nobody else
FINALIZER = f"{GROUP}/room"

DELETE, RETAIN = "Delete", "Retain"

READY = "Ready"
AS_WANTED = "AsWanted"
ADOPTED = "Adopted"  # as wanted, and it was there before: it is never deleted
HUB_AWAY = "HubAway"
NAME_TAKEN = "NameTaken"
REFUSED = "Refused"

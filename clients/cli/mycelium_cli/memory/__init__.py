"""`mycelium memory …`: the table of its commands."""

from mycelium_cli.command import Entry, Group

_GROUPS = "What usually stands there"

group = Group(
    "memory",
    "Memory: what the room knows, as versioned markdown.",
    {
        "set": Entry("memory.write:set_", "Write a memory, or a new version of it."),
        "get": Entry("memory.read:get", "Read a memory, as it is or as it was."),
        "ls": Entry("memory.listing:ls", "List memories, as they are or as they were."),
        "search": Entry("memory.search:search", "Find memories by what they mean, and by their words."),
        "reindex": Entry("memory.search:reindex", "Make the search index anew."),
        "rm": Entry("memory.write:remove", "Remove a memory; its versions can still be read."),
        "links": Entry("memory.links:links", "What a memory links to, and what links to it."),
        "history": Entry("memory.read:history", "The versions of a memory."),
        "catchup": Entry("memory.catchup:catchup", "Catch up: what a room has come to, and what waits for you."),
        "subscribe": Entry("memory.subscribe:subscribe", "Hear of changes of memories."),
        "decisions": Entry("memory.listing:decisions", "Why things are the way they are.", _GROUPS),
        "status": Entry("memory.listing:status", "Where things stand.", _GROUPS),
        "work": Entry("memory.listing:work", "What has been built.", _GROUPS),
        "context": Entry("memory.listing:context", "Background and preferences.", _GROUPS),
        "procedures": Entry("memory.listing:procedures", "How to do things again.", _GROUPS),
    },
    example='mycelium memory set decisions/storage "Rooms are folders; memory is markdown files"\n'
    "mycelium memory get decisions/storage\nmycelium memory ls decisions/\n"
    'mycelium memory search "how do we store things"',
)

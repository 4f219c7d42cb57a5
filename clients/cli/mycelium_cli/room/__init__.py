"""`mycelium room …`: the table of its commands."""

from mycelium_cli.command import Entry, Group

group = Group(
    "room",
    "Rooms: where a team of people and agents talks and works.",
    {
        "create": Entry("room.manage:create", "Create a room."),
        "ls": Entry("room.listing:ls", "List rooms."),
        "show": Entry("room.listing:show", "Show a room and who is in it."),
        "set": Entry("room.manage:change", "Change a room's title, whom it is for, or your folder for it."),
        "use": Entry("room.manage:use", "Make a room the one that commands act in."),
        "delete": Entry("room.manage:delete", "Delete a room and everything in it."),
        "add": Entry("room.people:add", "Let a user or an agent into a room."),
        "remove": Entry("room.people:remove", "Take a user or an agent out of a room."),
        "send": Entry("room.send:send", "Post a message."),
        "messages": Entry("room.messages:messages", "Read a room's messages, newest first."),
        "watch": Entry("room.watch:watch", "Follow what is happening, live."),
        "event": Entry("room.event:event", "Post an event, to be looked up later."),
        "resolve": Entry("room.event:resolve", "Close an event, or say how far it is."),
        "amend": Entry("room.send:amend", "Replace the text of a message of your own."),
        "synthesize": Entry("room.synthesize:synthesize", "Ask for a synthesis; no engine writes one yet."),
        "clone": Entry("room.clone:clone", "Copy a room to local files."),
        "export": Entry("room.bundle:export", "Write a room to one file, unread messages and all."),
        "import": Entry("room.bundle:import_", "Make a room from a file of `room export`."),
    },
    example="mycelium room create design-review\nmycelium room messages design-review --limit 20",
)

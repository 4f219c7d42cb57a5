"""`mycelium board …`: the table of its commands."""

from mycelium_cli.command import Entry, Group

group = Group(
    "board",
    "Threads of tasks and memories: talk about one thing in its own place.",
    {
        "send": Entry("board.thread:send", "Post in the thread of a memory."),
        "messages": Entry("board.thread:messages", "Read the thread of a memory, newest first."),
    },
    example='mycelium board send context/api-shape "this predates the v2 routes, still true?"\n'
    "mycelium board messages context/api-shape",
)

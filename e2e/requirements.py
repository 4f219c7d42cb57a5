"""What the product promises, each with the row of the feature list it belongs to and where it was promised.

A test cites what it proves: `@requirement("rooms:create:name-rules")`. An id that is not here fails at import;
`test_coverage.py` fails for a promise without a test, a test without a promise, and a row without promises. Sources:
H is the user's manual, D the design, I the issue that asked for it.
"""

# ruff: noqa: E501 - a table: one promise a line

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


class Requirement(NamedTuple):
    """One promise. `deferred` says why nothing proves it yet."""

    id: str
    row: str
    promise: str
    source: str
    deferred: str = ""


# The rows of the feature list that are built so far, and what of each.
ROWS = {
    "R1": "rooms",
    "R2": "private rooms",
    "R3": "messages",
    "R4": "mentions",
    "R5": "events",
    "R6": "threads, pings, notices",
    "R7": "live stream",
    "R8": "await and respond",
    "R9": "honest delivery",
    "R11": "presence",
    "R12": "members, users, names",
    "R14": "ephemeral agents",
    "I6": "doctor",
    "E1": "engines, as members that are asked",
    "E2": "hello",
    "E11": "models",
    "E12": "runs that outlive any process",
    "M1": "memory: set, get, ls, rm, versions",
    "M2": "keys of the usual groups",
    "M6": "threads of memories",
    "M5": "links between memories",
    "M3": "the markdown tree",
    "M8": "expected versions, and how it was",
    "O1": "on a cluster: install, rooms as objects",
    "O3": "the hub on one machine",
    "all": "what holds for every command and every address",
}

_R = Requirement
_LATER = "belongs to a later step of the plan"

LISTED = (
    # R1 · rooms
    _R("rooms:create:answers", "R1", "Creating a room answers with it, and says how to use it.", "H Rooms"),
    _R("rooms:create:name-rules", "R1", "Names have up to 100 characters, spaces and accents; bad ones are refused with the reason.", "H Room names"),
    _R("rooms:create:one-name-once", "R1", "Names differ by more than case and accents' encoding.", "D §9 Handles"),
    _R("rooms:create:repeated", "R1", "The same create under the same key makes one room.", "D §3 Idempotency"),
    _R("rooms:ls:all", "R1", "Every room is listed with its members and its last message.", "H Rooms"),
    _R("rooms:show:members", "R1", "A room is shown with who is in it and who is waiting.", "H Rooms"),
    _R("rooms:use:active", "R1", "`room use` makes later commands act there; environment and flag win over it.", "H Rooms"),
    _R("rooms:missing:refused", "R1", "A room that is not there is refused with the command that creates it.", "H Ephemeral agents"),
    _R("rooms:title:changes", "R1", "The display title can be changed, the name can't.", "H What a room is on disk"),
    _R("rooms:delete:all", "R1", "Deleting a room erases everything in it; its name is free for a room that begins empty.", "H Rooms"),
    _R("rooms:delete:disk", "R1", "Soon after a room is deleted, nothing on the hub's disk holds its texts.", "D §3 Erasing a room"),
    _R("rooms:delete:watchers", "R1", "Whoever watches or waits in a room learns that it is gone.", "D §3 Erasing a room"),
    _R("rooms:delete:neighbours", "R1", "Deleting `a` leaves `ab` whole, and a new `a` begins empty.", "I Cases"),
    _R("rooms:create:bytes", "R1", "A name that is too long in bytes is refused, and that is said.", "I Cases"),
    _R("rooms:folders", "R1", "Each person sorts their rooms into folders; nobody else sees them.", "H Private rooms"),
    _R("rooms:disk", "R1", "A room has its documented folders on the hub, made and removed with it.", "H What a room is on disk"),
    _R("rooms:clone", "R1", "A room can be copied to local files, whole or not at all.", "H Rooms"),
    _R("rooms:export", "R1", "A room goes through one bundle to another hub: texts, times, authors, members, events.", "FEATURES R1"),
    _R("rooms:import:unread", "R1", "What nobody had read before an export is unread after the import.", "I What must be true"),
    _R("rooms:import:marked", "R1", "What was imported is marked so in the log.", "I What must be true"),
    _R("rooms:import:whole", "R1", "A bundle that was cut or altered makes no room and leaves nothing.", "I What must be true"),
    _R("rooms:import:hidden", "R1", "Nobody sees an imported room before it is complete.", "I What must be true"),
    _R("rooms:import:who", "R1", "Only the operator, and who made or was in the room, imports it.", "I What must be true"),
    # R2 · private rooms
    _R("private:same-as-absent", "R2", "Whatever a stranger asks of a private room, the answer is that of a room that is not there.", "I Private rooms"),
    _R("private:members", "R2", "Members and the creator use a private room like any other.", "H Private rooms"),
    _R("private:lists", "R2", "Lists, counts, people's agents and near names tell a stranger nothing of it.", "I Private rooms"),
    _R("private:later", "R2", "A room made private keeps its members; watchers and waiters who are none are told that it is gone.", "H Private rooms"),
    _R("private:nobody", "R2", "A private room has somebody: who makes one says who they are.", "H Private rooms"),
    _R("private:ids", "R2", "Ids of its messages are worth nothing elsewhere.", "I Private rooms"),
    _R("private:command-line", "R2", "`--private`, groups and filters on the command line.", "H Private rooms"),
    # R3 · messages
    _R("messages:post:stored", "R3", "The answer to a post is the message as every reader sees it.", "D §8 Shapes"),
    _R("messages:post:anybody", "R3", "Any handle may post, also one that nobody registered.", "H Ephemeral agents"),
    _R("messages:post:survives-kill", "R3", "What was acknowledged is there after SIGKILL of the hub, of NATS, of anything.", "D §4.1"),
    _R("messages:post:one-order", "R3", "A room has one order, the same in history and live, for every reader.", "D §4.2"),
    _R("messages:post:short-ids", "R3", "The last eight digits of an id do wherever an id does.", "H Editing a message"),
    _R("messages:history:pages", "R3", "History is newest first, and its cursor walks all of it without gap or repeat.", "H Reading history"),
    _R("messages:history:window", "R3", "`--before` and `--since` take timestamps as printed, and ages.", "H Reading history"),
    _R("messages:amend:own", "R3", "One's own message gets a new text, marked as edited.", "H Editing a message"),
    _R("messages:amend:others", "R3", "Somebody else's message can't be changed.", "H Editing a message"),
    _R("messages:amend:original", "R3", "The original of an amended message can be looked up.", "H Editing a message"),
    _R("messages:history:filters", "R3", "History is filtered by sender, kind, status, thread and text, alone and together.", "I History"),
    _R("messages:history:search", "R3", "Words are found whatever their case, accents and script, and nothing in them is a command.", "I History"),
    _R("messages:history:page-bytes", "R3", "A page ends at 512 KB with a cursor.", "D §3 Answers"),
    _R("messages:history:zones", "R3", "Times with offsets, and days of the reader's zone, also where clocks change.", "I Cases"),
    _R("messages:history:large", "R3", "A room of a million messages pages like a small one.", "I History"),
    _R("messages:size:whole", "R3", "A byte, 64 KB and emoji arrive as they were sent.", "I Cases"),
    _R("messages:size:refused", "R3", "A null byte, blanks and 300 KB are refused with the reason, and nothing is stored.", "I Cases"),
    _R("messages:text:harmless", "R3", "Control characters in a message don't reach a reader's terminal.", "I CLI"),
    _R("messages:key:repeat", "R3", "The same post under the same key is one message.", "D §3 Idempotency"),
    _R("messages:key:altered", "R3", "Another body under the same key is refused.", "D §3 Idempotency"),
    _R("messages:key:cut-line", "R3", "When the line is cut after the commit, the client's retry posts nothing twice.", "I Cases"),
    _R("messages:attachments", "R3", "Files can be attached up to a limit.", "FEATURES R3", _LATER),
    _R("faults:kill", "R3", "SIGKILL of any process under load, fifty times each: nothing acknowledged is lost, repeated or reordered, every mention comes.", "I Faults"),
    _R("faults:power", "R3", "Power is lost under load, twenty times: nothing acknowledged is lost, repeated or reordered, every mention comes.", "I Power loss"),
    _R("faults:power:seen", "R3", "A disk that drops what was not synced is one, and a server that acknowledges too early is caught on it.", "I Power loss"),
    _R("faults:pause", "R3", "Any process that hangs for seconds under load: the same.", "I Faults"),
    _R("faults:cut", "R3", "Lines that are cut at any byte under load: the same.", "I Faults"),
    _R("faults:cluster", "R3", "Three NATS servers restarted one by one, and a rolling restart of everything, under load: the same.", "I Faults"),
    _R("faults:tables", "R3", "Tables deleted or corrupted under a running hub: the same, and those of all replicas equal each other and a rebuild from zero.", "I Faults"),
    _R("faults:disk", "R3", "A disk that fills up again and again under load: the same, and posts go on when there is room.", "I Faults"),
    _R("faults:clock", "R3", "Clocks that jump, of each process by itself: the same.", "I Faults"),
    _R("faults:retries", "R3", "What is asked 1 to 50 times under one key, with crashes in between, has one effect and one answer.", "I Faults"),
    _R("faults:reconnects", "R7", "Ten thousand streams that come back have no gap and no repeat.", "I Faults"),
    _R("faults:field:silence", "R8", "NATS restarts under long polls and open streams, then silence, then a post: it arrives, or health is red.", "I Field"),
    _R("faults:field:held", "R8", "A replica that is paused for ten seconds while it holds requests loses and repeats nothing.", "I Field"),
    _R("faults:field:broadcast", "R7", "A broadcast while every client reconnects reaches each of them once.", "I Field"),
    _R("faults:field:other-gateway", "R8", "A retry that lands on another gateway gets the first answer.", "I Field"),
    _R("faults:seeded", "R3", "A seeded bug (acknowledged before append, expected over a wildcard, cursor moved at delivery) is caught by the fault runs.", "I Faults"),
    # R4 · mentions
    _R("mentions:text:found", "R4", "`@handle` is found among punctuation, once however often it stands there, in any case.", "I Cases"),
    _R("mentions:text:not-found", "R4", "Addresses, code, quotes, URLs and escaped signs mention nobody.", "FEATURES R4"),
    _R("mentions:silent", "R4", "`@~handle` names somebody and wakes nobody.", "FEATURES R4"),
    _R("mentions:self", "R4", "Who mentions itself gets nothing, and reads that.", "I Cases"),
    _R("mentions:unknown:refused", "R4", "An unknown handle is refused with the near ones, and nothing is stored.", "I Cases"),
    _R("mentions:unknown:allowed", "R4", "`--allow-unknown` posts it, and says that nobody got it.", "D §9 Mention states"),
    _R("mentions:team", "R4", "A team's name mentions its members.", "D §9 Mention states"),
    _R("mentions:user", "R4", "A person of the hub can be mentioned, and waits like an agent.", "H Ephemeral agents"),
    _R("mentions:amended", "R4", "An amended text is delivered to the newly named only.", "D §9 Mention states"),
    _R("mentions:all", "R4", "`@all` mentions every agent of the room, not people, not who asks.", "I Cases"),
    # R5 · events
    _R("events:post", "R5", "An event is posted as documented, and keeps payload and provenance.", "H Events"),
    _R("events:kinds", "R5", "Actions and concerns begin open; own kinds are kept; a wrong one is refused.", "H Events"),
    _R("events:look-up", "R5", "Events are looked up by kind, status and time.", "H Events"),
    _R("events:status", "R5", "An event's status is set by PATCH; what is no event has none.", "H Events"),
    _R("events:expiry", "R5", "An event with a time to live expires by itself, is told live, and stays in history.", "H Events"),
    _R("events:expiry:restart", "R5", "Also when the hub was killed in between.", "D §4.1"),
    _R("events:command-line", "R5", "`room event` and `room resolve`.", "H Events"),
    # R6 · threads
    _R("threads:ping", "R6", "A post in a thread is a ping with thread, sender and message.", "H Tasks, threads and pings"),
    _R("threads:ping:live-only", "R6", "Pings are not in the history, nor told again to who resumes.", "H Tasks, threads and pings"),
    _R("threads:ping:wakes-nobody", "R6", "A ping uses up nobody's turn.", "H Tasks, threads and pings"),
    _R("threads:notice", "R6", "The kinds of notices are fixed in a contract.", "H Tasks, threads and pings"),
    # R7 · live
    _R("live:stream:at-once", "R7", "Who watches gets messages, amendments, members and changes as they happen, encoded as in history.", "D §3 Live streams"),
    _R("live:stream:resumed", "R7", "A watcher that comes back with its last id misses nothing and gets nothing twice.", "D §3 Live streams"),
    _R("live:stream:restart", "R7", "Resuming works across SIGKILL and restart of the hub.", "D §3 Live streams"),
    _R("live:stream:several", "R7", "One stream carries several rooms, each event with its room.", "D §8"),
    _R("live:stream:foreign-id", "R7", "A last id that is not of this log is answered with `reset`, then live.", "D §3 Live streams"),
    _R("live:watch:prints", "R7", "`room watch` prints what happens, through a restart of the hub.", "H Rooms"),
    # R8 · await and respond
    _R("await:order:oldest-first", "R8", "Mentions from before the first wait all come, oldest first.", "I Cases"),
    _R("await:order:between", "R8", "A mention between two waits is not missed.", "I Cases"),
    _R("await:timeout", "R8", "A wait that times out says so by its exit status and acknowledges nothing.", "I Cases"),
    _R("await:vanished", "R8", "A client that vanishes before it has the answer takes nothing with it.", "I Cases"),
    _R("await:killed-after", "R8", "An agent killed after `await` gets the mention again, marked.", "I Cases"),
    _R("await:sessions", "R8", "Two sessions of one handle don't acknowledge for each other.", "I Cases"),
    _R("await:next-call", "R8", "A session's next call acknowledges what it was given; so does `ack`.", "D §4.3"),
    _R("await:key", "R8", "The same wait under the same key gets the first answer.", "D §3 Idempotency"),
    _R("await:earlier", "R8", "A mention comes with the messages before it since the agent last spoke, at most 30, oldest first.", "H Taking part"),
    _R("await:only-mentions", "R8", "Only a message that mentions the agent wakes it.", "H Taking part"),
    _R("await:task", "R8", "`--task` waits for one thread.", "FEATURES R8"),
    _R("await:seat", "R8", "A seat has a queue of its own: `@sec#night` goes to who waits as that seat, and to nobody else.", "D §4.3"),
    _R("await:removed", "R8", "A member that is removed while it waits is told at once.", "D §3 Errors"),
    _R("await:lease", "R8", "`--lease` renews a claim while it waits.", "FEATURES R8", "claims come with the board"),
    _R("await:unregistered", "R8", "An unregistered handle can neither wait nor respond; the refusal names the command that registers it.", "H Ephemeral agents"),
    _R("await:loop", "R8", "`--loop` prints every message, through SIGKILL and restart of the hub, also when none came before.", "H Taking part"),
    _R("await:exec:environment", "R8", "`--exec` gets the message as JSON on stdin and its context in the environment.", "H Environment"),
    _R("await:exec:acknowledges", "R8", "Exit 0 of the command acknowledges; a `respond` inside it does not.", "D §4.3"),
    _R("await:exec:parks", "R8", "After three failures the message is parked, reported, and the loop goes on.", "D §4.3"),
    _R("await:unread", "R8", "A hundred thousand unread messages cost a wake nothing.", "I await"),
    _R("await:stops", "R8", "A loop stops on 401 and 403 instead of asking for ever.", "FEATURES R8"),
    _R("respond:thread", "R8", "A reply goes to the message that the session was given, unless flags say otherwise.", "D §9 A plain respond"),
    # R9 · honest delivery
    _R("delivery:woken", "R9", "`woken` is said when a wait was open as the message was stored.", "D §4.4"),
    _R("delivery:queued", "R9", "A stopped agent's mention reads `queued`; it gets it when it starts.", "I Cases"),
    _R("delivery:left", "R9", "A removed member reads `left`; the message is stored.", "D §9 Mention states"),
    _R("delivery:receipts", "R9", "`receipts` says how far each delivery has come: queued, delivered, acknowledged, parked.", "FEATURES R9"),
    _R("delivery:states", "R9", "The answer to a post, the command's output and the receipts say the same of each recipient.", "D §9 Mention states"),
    _R("delivery:left-and-live", "R9", "One removed member and two live ones in one message: each gets what is its own.", "I Cases"),
    _R("delivery:paused", "R9", "A paused member's messages wait until it is resumed; a broadcast says so of it alone.", "I Cases"),
    # R11 · presence
    _R("presence:said", "R11", "Who says what it is doing is shown so, in the room, in lists and live.", "I Presence"),
    _R("presence:implied", "R11", "Who waits is idle, who was given a message works, until it answers.", "I Presence"),
    _R("presence:ends", "R11", "A killed agent, and one that is not heard of any more, is offline.", "I Presence"),
    _R("presence:refused", "R11", "Only members are present, with one of the states, for a bounded time.", "I Presence"),
    _R("presence:not-a-fact", "R11", "Presence is no message: not in the history, not for who resumes.", "I Presence"),
    # R12 · people
    _R("members:agent:record", "R12", "An agent's record holds what it was given; registering it again changes that and keeps the rest.", "H Users & teams"),
    _R("members:agent:filters", "R12", "Agents are listed by owner and by team.", "H Users & teams"),
    _R("members:agent:removed", "R12", "A removed agent is gone from the room; what it posted stays.", "H Users & teams"),
    _R("members:handles", "R12", "Handles follow one grammar, in any case the same; the hub's own are refused.", "D §9 Handles"),
    _R("members:namespace", "R12", "A handle is one thing a hub: a user can't be registered as an agent.", "D §9 Handles"),
    _R("users:record", "R12", "People are kept once a hub, with the agents they own.", "H Users & teams"),
    _R("users:taken", "R12", "A second person can't be created under a handle.", "H Users & teams"),
    _R("users:names", "R12", "A user's name is shown wherever their messages are, as it is now.", "H Your name"),
    _R("iam:hub", "R12", "`iam` sets who one is on this machine, and the record on the hub.", "H Users & teams"),
    _R("iam:no-hub", "R12", "Without a hub `iam` still sets it here, and says that the record was not saved.", "H Users & teams"),
    _R("whoami:sources", "R12", "`whoami --sources` says who, where, and where each of it was found.", "FEATURES R12"),
    _R("members:pause", "R12", "An agent is paused and resumed by command; both are shown.", "FEATURES R10"),
    # R14 · ephemeral agents
    _R("ephemeral:read-only", "R14", "With everything in the environment an agent works on a read-only home and file system.", "I Ephemeral agents"),
    _R("ephemeral:errors", "R14", "The documented errors, word for word, each with its exit status.", "H Ephemeral agents"),
    _R("ephemeral:hub-down", "R14", "A CI job whose hub is down gets one line and an exit status, and nothing is written.", "I Cases"),
    _R("ephemeral:room-id", "R14", "MYCELIUM_ROOM_ID does what MYCELIUM_ACTIVE_ROOM does.", "H Ephemeral agents"),
    _R("ephemeral:token", "R14", "MYCELIUM_AGENT_AUTH_TOKEN goes to the hub as a bearer token, and nowhere else.", "H Ephemeral agents"),
    # I6 · doctor
    _R("doctor:lines", "I6", "`doctor` says for each part what was seen, and the next command where one is needed.", "H Troubleshooting"),
    _R("doctor:modes", "I6", "It knows a hub from a spoke, and is told otherwise by `--mode`.", "H Troubleshooting"),
    _R("doctor:finds", "I6", "Wrong settings, drift, open files, a stale hub.json, a taken port and a missing room are found.", "I doctor"),
    _R("doctor:fix", "I6", "`--fix` mends what can be mended, and says what it can't.", "H Troubleshooting"),
    _R("doctor:deep", "I6", "`--deep` names a flipped bit in the log by fact and room, one in a table by row, and mends both.", "I What must be true"),
    # E1 · engines
    _R("engines:commands", "E1", "`engine create`, `ls`, `show`, `invoke` and `rm` do what the manual shows.", "H Engines"),
    _R("engines:members", "E1", "An engine is a member like any other; no agent becomes one unasked.", "H Engines"),
    _R("engines:silent", "E1", "An engine's words wake no engine.", "D §6 Engines"),
    _R("engines:threads", "E1", "Each engine that a message names answers it, where it was asked.", "H Engines"),
    _R("engines:errors", "E1", "What went wrong is posted once, with the next command.", "I What must be true"),
    # E2 · hello
    _R("engines:hello:answers", "E2", "A mention of hello is answered once, by one call of the model.", "H Hello"),
    # E11 · models
    _R("engines:without-model", "E11", "A hub without a model is whole but for engines, which say what to set.", "I What must be true"),
    _R("engines:anthropic", "E11", "Models of either protocol are asked; one that is silent is told.", "H Models"),
    _R("models:real", "E11", "Hello answers through a model that nobody scripted.", "I What must be true"),
    _R("models:key", "E11", "The key is set from a pipe into a file of its own, and shown by its last four characters.", "I What a user gets"),
    _R("models:doctor", "E11", "`doctor` asks the model for a reply, and says what is wrong when there is none.", "H Models"),
    _R("budget:turns", "E11", "Engines never ask a model more often in a room than it may be, also all at once.", "FEATURES E11"),
    _R("budget:tokens", "E11", "Tokens and money are counted, end a budget, and stand in the engine's message.", "FEATURES E11"),
    _R("budget:unknown", "E11", "Tokens that a provider does not tell are said to be unknown, and not guessed.", "D §4"),
    _R("budget:hub", "E11", "The hub's limits hold in every room but one that has its own; money needs a price.", "FEATURES E11"),
    _R("budget:commands", "E11", "`engine budget` shows, sets and renews; `engine show` has it in a line.", "FEATURES E11"),
    _R("budget:kill", "E11", "A turn is counted once, whatever dies between it and its record.", "D §4"),
    _R("budget:away", "E11", "Without the engine service a budget is not known, in words; strangers learn nothing.", "D §4"),
    _R("budget:copies", "E11", "A copy of a room has spent nothing.", "FEATURES E11"),
    _R("engines:secret", "E11", "The model's key is sent to the model, and is nowhere else.", "I What must be true"),
    # E12 · runs
    _R("engines:temporal:loopback", "E12", "The hub's Temporal is reached from this machine only.", "I What must be true"),
    _R("engines:runs:every-event", "E12", "Any process killed after any event of a run's history: the answer is posted, once.", "I What must be true"),
    _R("engines:late", "E12", "A mention while Temporal is away is answered, once, when it is back.", "I What must be true"),
    # O1 · on a cluster (`make test-cluster`)
    _R("cluster:install", "O1", "`helm install` on an empty namespace gives a hub, two of each service; `helm test` posts and receives.", "I What a user gets"),
    _R("cluster:insecure", "O1", "That nobody signs in is said by the notes and by /health.", "I What must be true"),
    _R("cluster:converse", "O1", "Two agents converse through the Service.", "I Proof"),
    _R("cluster:own-subjects", "O1", "A service's NATS user may use its own subjects only.", "I What must be true"),
    _R("cluster:network", "O1", "Pods reach what the design lets them reach, and nothing else.", "I What must be true"),
    _R("cluster:room", "O1", "A Room object makes, changes and deletes a room, and shows its condition.", "I Proof"),
    _R("cluster:engine", "O1", "An engine on a cluster answers whoever mentions it.", "I What a user gets"),
    _R("cluster:room:names", "O1", "`spec.name` may hold spaces and accents, and never changes.", "I What must be true"),
    _R("cluster:room:kept", "O1", "A room is kept where the policy says so, and where it was there before.", "I What a user gets"),
    _R("cluster:room:killed", "O1", "An operator killed between two steps is followed by one that goes on.", "I Proof"),
    _R("cluster:room:away", "O1", "A deletion while the operator is down is caught up with.", "I Proof"),
    _R("cluster:upgrade", "O1", "A rolling update under load fails no acknowledged post.", "I Proof"),
    _R("cluster:log-restarts", "O1", "A restart of the log under load fails no acknowledged post.", "D §4"),
    _R("cluster:three-servers", "O1", "A hub on three NATS servers goes on when one is killed.", "I What must be true"),
    _R("cluster:secrets", "O1", "What the first install made secret is kept by an upgrade.", "I What must be true"),
    _R("cluster:uninstall", "O1", "Uninstall leaves nothing.", "I Proof"),
    # M · memory
    _R("memory:set:get", "M1", "What one machine sets every machine gets, with who wrote it and which version it is.", "H Memory"),
    _R("memory:fields:kept", "M1", "Fields and tags of one's own stay when the text changes.", "H Your own fields"),
    _R("memory:set:values", "M1", "A value is markdown or JSON, typed, from a file or from a pipe, and comes back as it was.", "H Memory"),
    _R("memory:raw", "M1", "A memory can be seen exactly as it is stored.", "H How it's stored"),
    _R("memory:versions", "M1", "Every version can be listed and read, also of what was removed.", "I What must be true"),
    _R("memory:refused", "M1", "What can't be kept is refused with the reason, never dropped.", "I What must be true"),
    _R("memory:deleted-room", "M1", "A deleted room's memory is gone from answers and from disk.", "I What must be true"),
    _R("memory:transfer", "M1", "A room takes its memory along to another hub, versions, authors and threads, marked as imported.", "I What must be true"),
    _R("memory:survives", "M1", "Every acknowledged version survives SIGKILL.", "D §4.1"),
    _R("memory:keys", "M2", "Keys under the usual groups follow their rules, checked by the command and by the hub; keys that a disk takes for one never overwrite each other.", "H Key rules"),
    _R("memory:groups", "M2", "Keys are listed by prefix and by tag, the usual groups by a command each.", "H Structured Memory Guide"),
    _R("memory:thread", "M6", "Every memory has a thread from its first version, which nobody sets; the channel learns that it is discussed, never what.", "H Discussing a memory"),
    _R("memory:links:forms", "M5", "`[[key#section|text]]`, `myc://key` and typed fields are links; in code and comments nothing is.", "H Linking memories"),
    _R("memory:links:shown", "M5", "A memory shows what it links to and what links to it, with what is the matter.", "H Backlinks"),
    _R("memory:links:at-once", "M5", "A target that is removed, renamed or comes back shows at once.", "I What must be true"),
    _R("memory:links:check", "M5", "`links --check` names broken links, missing sections and memories that nothing links to; its exit status says whether a link is broken.", "H Backlinks"),
    _R("memory:links:one-room", "M5", "Links lead nowhere outside their room; one to a private room looks the same as one to a room that is not there.", "H Embedding one memory in another"),
    _R("memory:embeds", "M5", "`get --expand` puts expandable memories in place of `![[key]]`, one level deep; the rest is left as written and reported.", "H Embedding one memory in another"),
    _R("memory:graph", "M5", "The graph has every memory and every link between them.", "H Backlinks"),
    _R("memory:tree:files", "M3", "Every memory is a markdown file in its room's folder, exactly as it is stored.", "H How it's stored"),
    _R("memory:tree:edits", "M3", "A file that is edited, made or removed by hand becomes a version, by `filesystem` or whom the room's `.mycelium` names.", "I What must be true"),
    _R("memory:tree:renames", "M3", "A file that is renamed by hand says which memory it was.", "D §9"),
    _R("memory:tree:conflicts", "M3", "An edit by hand that meets a write keeps both, and it is told.", "I What must be true"),
    _R("memory:tree:problems", "M3", "A file that is no document is left alone and reported; nothing is read or written through a link.", "I What must be true"),
    _R("memory:tree:git", "M3", "The folder can be under git: a checkout of hundreds of files is taken up.", "H Memory as Files"),
    _R("memory:tree:down", "M3", "What was done by hand while the hub was down is taken up when it starts, once.", "I What must be true"),
    _R("memory:tree:rooms", "M3", "A deleted room takes its files and those of no room with a name like it.", "I Cases from the field"),
    _R("memory:tree:crashes", "M3", "Killing the memory service loses no write and no edit, and makes no version twice.", "I Proof"),
    _R("memory:stale", "M8", "A write that expects another version is refused with the one that is there and its author; of many one wins.", "I What must be true"),
    _R("memory:as-of", "M8", "A document and the list can be read as they were at a time.", "I What must be true"),
    # O3 · the hub on one machine
    _R("hub:up:ready", "O3", "`up` on an empty home starts the hub, prints its address and writes it down.", "D §8"),
    _R("hub:up:detached", "O3", "`up --detach` returns once the hub answers, and leaves it running.", "I What a user gets"),
    _R("hub:up:private", "O3", "Nobody else on the machine can read the hub's home.", "D §7"),
    _R("hub:up:second", "O3", "A second hub on the same home is refused with the reason.", "I Hub"),
    _R("hub:up:two", "O3", "Two hubs with two homes run side by side and know nothing of each other.", "D §8"),
    _R("hub:up:port", "O3", "A port in use is refused, and said.", "I Hub"),
    _R("hub:up:exposed", "O3", "An address that others reach is refused while nobody has to sign in.", "D §7"),
    _R("hub:up:stale", "O3", "A `hub.json` that was left behind is replaced.", "I Hub"),
    _R("hub:killed:nothing-left", "O3", "A killed hub leaves nothing behind that owns its data.", "I Hub"),
    _R("hub:child:back", "O3", "A killed NATS comes back by itself, with everything in it.", "I Hub"),
    _R("hub:down", "O3", "`down` stops the hub, once and again.", "I What a user gets"),
    _R("hub:down:volumes", "O3", "`down --volumes` deletes every room and message, and asks first; settings stay.", "H Environment"),
    _R("hub:status", "O3", "`status` says by text, JSON and exit status how the hub is.", "I What a user gets"),
    _R("hub:logs", "O3", "`logs` shows the last lines of all services or of one.", "H Logs"),
    _R("config:set", "O3", "Settings are set, read back and shown with their source.", "I What a user gets"),
    _R("config:near", "O3", "A misspelt setting or a wrong value is refused with what would do.", "I CLI"),
    _R("config:apply", "O3", "`config apply` makes a running hub take its settings in place; nobody who posts meanwhile is turned away or loses what was acknowledged.", "H Config changes don't take effect"),
    _R("config:apply:refused", "O3", "What is wrong in the file, or can't be started with, is said and leaves the hub as it was.", "D §9 config apply"),
    _R("config:drift", "O3", "`up` and `doctor` say where a running hub's settings differ, with the command that mends it.", "H Config changes don't take effect"),
    # all
    _R("cli:misspelt", "all", "A misspelt flag or command is refused with the nearest right one.", "I Cases"),
    _R("cli:help", "all", "Every command has `--help` with an example, and `--json`.", "D §8 CLI"),
    _R("cli:errors", "all", "An error is one line with cause and next command, and an exit status by kind; with --json a document.", "D §3 Errors"),
    _R("cli:unreachable", "all", "Without a hub, commands fail at once and say which address.", "H Ephemeral agents"),
    _R("cli:nothing-stored", "all", "With everything in the environment no file is written.", "H Ephemeral agents"),
    _R("cli:colours", "all", "Colours only on a terminal, and never under NO_COLOR.", "I CLI"),
    _R("cli:completion", "all", "bash, zsh and fish complete commands and options.", "I CLI"),
    _R("cli:interrupted", "all", "Ctrl-C ends at once with status 130 and no traceback.", "I CLI"),
    _R("http:problems", "all", "Errors are problem documents with a slug, also for wrong addresses, methods and bodies.", "D §8"),
    _R("http:origin", "all", "A foreign Host or Origin is refused.", "D §7"),
    _R("http:openapi", "all", "The hub serves its OpenAPI document, and every address of this step is in it.", "I Contracts"),
    _R("http:probes", "all", "/healthz, /health and /metrics answer.", "D §8"),
    _R("load:slow-reader", "all", "A watcher that does not read is closed; nobody else notices.", "I Backpressure"),
    _R("load:many", "all", "Ten times the load is answered 429 or 503 with Retry-After, loses nothing acknowledged, and passes.", "I Backpressure"),
    _R("load:disk", "all", "A full disk is answered 507 with Retry-After, loses nothing acknowledged, and passes.", "I Backpressure"),
    _R("load:streams", "all", "500 streams opened and killed leave no open handle behind.", "I Cases"),
    _R("demo:transcript", "all", "Three agents and a person talk through a restart; each saw the same.", "I make demo"),
    _R("readme:tour", "all", "The README's tour works as it is written.", "I Development"),
)  # fmt: skip

REQUIREMENTS = {row.id: row for row in LISTED}


def requirement(*ids: str) -> Callable[[Test], Test]:
    """Say what a test proves. Unknown ids fail here, at import."""
    for one in ids:
        if one not in REQUIREMENTS:
            raise LookupError(f"{one!r} is not in {__name__}")
    assert ids, "cite at least one requirement"

    def cited(test: Test) -> Test:
        return test

    return cited

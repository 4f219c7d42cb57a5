-- The tables of the rooms service. Times are milliseconds since 1970, 0 for never. Rebuilt from the log at will.
-- Without statistics SQLite prefers a short prefix of a primary key, so queries name the index where it matters.

-- Rooms that exist.
CREATE TABLE room (
  room_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,                 -- as its creator wrote it, in NFC
  folded TEXT NOT NULL UNIQUE,        -- what no two rooms share: NFC and case folded
  title TEXT NOT NULL,
  private INTEGER NOT NULL,
  created_by TEXT NOT NULL,           -- a handle, or empty
  created_at INTEGER NOT NULL,
  last_message_at INTEGER NOT NULL,   -- the latest time of a post: never goes back
  importing INTEGER NOT NULL          -- when its import last went on; 0 once it is complete, or was made here
) WITHOUT ROWID;

CREATE INDEX room_importing ON room (importing) WHERE importing > 0;

-- Rooms that were deleted: nothing of them is left but this.
CREATE TABLE grave (
  room_id TEXT PRIMARY KEY,
  deleted_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX grave_time ON grave (deleted_at);

-- People of the hub.
CREATE TABLE user (
  handle TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  team TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  looks TEXT NOT NULL,                -- skeleton of the handle
  called TEXT NOT NULL                -- skeleton of the name
) WITHOUT ROWID;
CREATE INDEX user_looks ON user (looks);
CREATE INDEX user_called ON user (called);
CREATE INDEX user_team ON user (lower(team));

-- Members of rooms, also those who have left.
CREATE TABLE member (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  kind INTEGER NOT NULL,              -- MemberKind
  owner TEXT NOT NULL,
  team TEXT NOT NULL,
  has_left INTEGER NOT NULL,          -- 1 when it has left
  paused INTEGER NOT NULL,            -- 1 when its deliveries wait until it is resumed
  record BLOB NOT NULL,               -- the Member as it was saved
  looks TEXT NOT NULL,                -- skeleton of the handle
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;
CREATE INDEX member_looks ON member (looks);
CREATE INDEX member_handle ON member (handle);
CREATE INDEX member_owner ON member (owner);
CREATE INDEX member_team ON member (room_id, lower(team));

-- The folders into which people have put rooms in their own lists.
CREATE TABLE folder (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  folder TEXT NOT NULL,
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;

-- When a handle last posted or took a delivery in a room.
CREATE TABLE seen (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;

-- Messages as readers see them now, in the log's order.
CREATE TABLE message (
  sequence INTEGER PRIMARY KEY,       -- of its fact
  room_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  sender_handle TEXT NOT NULL,
  content TEXT NOT NULL,
  message_type TEXT NOT NULL,         -- message or event; notice or change is what services say
  thread TEXT NOT NULL,               -- id, or empty for the channel
  reply_to TEXT NOT NULL,             -- id, or empty
  metadata_json TEXT NOT NULL,        -- JSON object, or empty
  mentions BLOB NOT NULL,             -- a Message that holds nothing but its mentions
  created_at INTEGER NOT NULL,
  edited_at INTEGER NOT NULL,
  ordered_at INTEGER NOT NULL,        -- the latest created_at of the room up to here, so that time and order agree
  kind TEXT NOT NULL,                 -- of an event, a notice or a change; empty for a message
  status TEXT NOT NULL,               -- of an event, as it was last set; that it has expired is reckoned when it is read
  expires_at INTEGER NOT NULL,
  words TEXT NOT NULL,                -- the text as it is searched, where that differs from the content; else empty
  -- What goes into the index of words: the text, and tokens for the room, the thread, the sender and the kind.
  said TEXT AS (CASE words WHEN '' THEN content ELSE words END),
  place TEXT AS (
    'r' || replace(room_id, '-', '') || ' t' || replace(room_id || thread, '-', '')
     || ' s' || replace(room_id, '-', '') || hex(sender_handle) || ' k' || replace(room_id, '-', '') || hex(kind)
  )
);
CREATE UNIQUE INDEX message_id ON message (room_id, message_id);
CREATE INDEX message_short ON message (room_id, substr(message_id, -8));
CREATE INDEX message_place ON message (room_id, thread, sequence);
CREATE INDEX message_room ON message (room_id, sequence);
CREATE INDEX message_sender ON message (room_id, sender_handle, thread, sequence);
CREATE INDEX message_kind ON message (room_id, kind, sequence) WHERE kind != '';
CREATE INDEX message_status ON message (room_id, status, sequence) WHERE status != '';
CREATE INDEX message_expiring ON message (room_id, sequence) WHERE expires_at > 0;
CREATE INDEX message_notice ON message (room_id, json_extract(metadata_json, '$.thread'), sequence)
  WHERE message_type = 'notice' AND json_valid(metadata_json);
CREATE INDEX message_due ON message (expires_at) WHERE expires_at > 0 AND status NOT IN ('resolved', 'expired');

-- The words of messages, by the sequence of the message; the texts themselves are not kept twice. Each token of `place`
-- holds the room's id, so that a search walks only lists of one room, newest first, and stops when it has enough. Kept
-- in step by the triggers, whoever changes a message.
CREATE VIRTUAL TABLE message_words USING fts5 (
  place, content, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER message_said AFTER INSERT ON message BEGIN
  INSERT INTO message_words (rowid, place, content) VALUES (new.sequence, new.place, new.said);
END;
CREATE TRIGGER message_reworded AFTER UPDATE OF content ON message BEGIN
  INSERT INTO message_words (message_words, rowid, place, content) VALUES ('delete', old.sequence, old.place, old.said);
  INSERT INTO message_words (rowid, place, content) VALUES (new.sequence, new.place, new.said);
END;
CREATE TRIGGER message_unsaid AFTER DELETE ON message BEGIN
  INSERT INTO message_words (message_words, rowid, place, content) VALUES ('delete', old.sequence, old.place, old.said);
END;

-- Texts that messages had before they were amended.
CREATE TABLE revision (
  room_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,          -- of the fact that replaced it
  content TEXT NOT NULL,
  at INTEGER NOT NULL,                -- from when on it was the text
  PRIMARY KEY (room_id, message_id, sequence)
) WITHOUT ROWID;

-- Threads that have a message.
CREATE TABLE thread (
  room_id TEXT NOT NULL,
  thread TEXT NOT NULL,
  PRIMARY KEY (room_id, thread)
) WITHOUT ROWID;
CREATE INDEX thread_short ON thread (room_id, substr(thread, -8));

-- What is to be given to a queue: a handle's own, or a seat's.
CREATE TABLE delivery (
  room_id TEXT NOT NULL,
  queue TEXT NOT NULL,                -- handle, or handle#seat
  message_id TEXT NOT NULL,
  handle TEXT NOT NULL,               -- the queue without its seat
  sequence INTEGER NOT NULL,          -- of the fact that queued it: the queue's order
  thread TEXT NOT NULL,
  state INTEGER NOT NULL,             -- DeliveryState; never goes back
  session TEXT NOT NULL,              -- the session that got it last
  attempts INTEGER NOT NULL,          -- how often it was given out
  offered_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  answered INTEGER NOT NULL,          -- 1 when the handle has replied to the message
  reason INTEGER NOT NULL,            -- DeliveryReason
  PRIMARY KEY (room_id, queue, message_id)
) WITHOUT ROWID;
CREATE INDEX delivery_open ON delivery (room_id, queue, sequence) WHERE ended_at = 0;
CREATE INDEX delivery_thread ON delivery (room_id, queue, thread, sequence) WHERE ended_at = 0;
CREATE INDEX delivery_given ON delivery (room_id, handle, offered_at)
  WHERE ended_at = 0 AND attempts > 0 AND answered = 0;
CREATE INDEX delivery_message ON delivery (room_id, message_id, queue);

-- How many deliveries of a handle have not ended, in all its queues: counted as they come and go, since they may be many.
CREATE TABLE unread (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  deliveries INTEGER NOT NULL,
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;

-- Which sessions were given a delivery: several may have been.
CREATE TABLE holding (
  room_id TEXT NOT NULL,
  queue TEXT NOT NULL,
  message_id TEXT NOT NULL,
  session TEXT NOT NULL,
  handle TEXT NOT NULL,               -- the queue without its seat
  given INTEGER NOT NULL,             -- sequence of the fact that gave it last
  received INTEGER NOT NULL,          -- 1 when the session said that it has it
  answered INTEGER NOT NULL,          -- as in delivery
  ended INTEGER NOT NULL,             -- 1 when the delivery has ended
  PRIMARY KEY (room_id, queue, message_id, session)
) WITHOUT ROWID;
CREATE INDEX holding_received ON holding (room_id, handle, session) WHERE received = 1 AND ended = 0;
CREATE INDEX holding_unanswered ON holding (room_id, handle, session, given) WHERE answered = 0;

-- The code and the token of each member that joins by a code, by their digests: SHA-256, in hexadecimal digits.
CREATE TABLE joining (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  code TEXT NOT NULL,                 -- the last one made; whether it was used stands in its entity
  expires_at INTEGER NOT NULL,
  made_by TEXT NOT NULL,              -- who made that code, if they had signed in
  token TEXT NOT NULL,                -- empty when none was given, or it is good no more
  given_by TEXT NOT NULL,             -- who made the code that it was given for, if they had signed in
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;
CREATE INDEX joining_code ON joining (code);
CREATE INDEX joining_token ON joining (token) WHERE token != '';

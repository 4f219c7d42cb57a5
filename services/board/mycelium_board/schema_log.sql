-- The tables of the daily log, beside those of the board. Times are milliseconds since 1970. Rebuilt from the log at
-- will.

-- Messages, by member and quarter of an hour: no zone's day begins within one.
CREATE TABLE log_count (
  room_id TEXT NOT NULL,
  quarter INTEGER NOT NULL,           -- quarters of an hour since 1970
  handle TEXT NOT NULL,
  messages INTEGER NOT NULL,
  last_at INTEGER NOT NULL,           -- when the last of them was posted
  last_sequence INTEGER NOT NULL,     -- sequence of its fact
  PRIMARY KEY (room_id, quarter, handle)
) WITHOUT ROWID;

-- Everything else that the log tells.
CREATE TABLE log_entry (
  room_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  sequence INTEGER NOT NULL,          -- of the fact
  handle TEXT NOT NULL,               -- of who did it; empty for the hub itself, whose rows are not shown
  what INTEGER NOT NULL,              -- LogWhat of log.proto
  key TEXT NOT NULL,
  thread TEXT NOT NULL,
  title TEXT NOT NULL,
  moved_from TEXT NOT NULL,           -- key before a renaming by hand, or empty
  outcome TEXT NOT NULL,              -- of a run, such as `done`, or empty
  answer TEXT NOT NULL,               -- of a decision, or empty
  PRIMARY KEY (room_id, at, sequence)
) WITHOUT ROWID;
CREATE INDEX log_key ON log_entry (room_id, key, sequence);
CREATE INDEX log_renamed ON log_entry (room_id, moved_from) WHERE moved_from != '';

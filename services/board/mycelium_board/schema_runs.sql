-- Runs of engines that are under way. Times are milliseconds since 1970. What ended is in the daily log alone.

CREATE TABLE run (
  room_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  engine TEXT NOT NULL,               -- handle
  kind TEXT NOT NULL,                 -- of the engine, such as `hello`
  message_id TEXT NOT NULL,           -- that asked for it
  asked_by TEXT NOT NULL,             -- handle of who posted that
  thread TEXT NOT NULL,               -- that it works in, or empty
  started_at INTEGER NOT NULL,
  PRIMARY KEY (room_id, run_id)
) WITHOUT ROWID;
CREATE INDEX run_start ON run (room_id, started_at DESC, run_id);
CREATE INDEX run_message ON run (room_id, message_id, engine);
CREATE INDEX run_thread ON run (room_id, thread);

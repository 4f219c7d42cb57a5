-- What is reserved in rooms. Times are milliseconds since 1970.

CREATE TABLE reservation (
  room_id TEXT NOT NULL,
  pattern TEXT NOT NULL,              -- as `globs.canonical` writes it
  token INTEGER NOT NULL,             -- beside one that is over and not said to be, another may have the pattern
  holder TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  ttl_s INTEGER NOT NULL,
  task TEXT NOT NULL,                 -- key of the task that it was made for, or empty
  thread TEXT NOT NULL,               -- of that task
  PRIMARY KEY (room_id, pattern, token)
) WITHOUT ROWID;
CREATE INDEX reservation_end ON reservation (expires_at);

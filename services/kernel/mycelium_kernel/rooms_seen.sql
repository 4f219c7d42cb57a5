-- What a service knows of rooms that does not own them: made beside its own tables, and rebuilt with them.

-- Rooms that exist, as far as this service has to know them.
CREATE TABLE room (
  room_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,                 -- as its creator wrote it, in NFC
  folded TEXT NOT NULL UNIQUE,        -- what no two rooms share: NFC and case folded
  private INTEGER NOT NULL,
  created_by TEXT NOT NULL,           -- a handle, or empty
  importing INTEGER NOT NULL          -- 1 until its import is complete
) WITHOUT ROWID;

-- Members of rooms, by their own records.
CREATE TABLE member (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  PRIMARY KEY (room_id, handle)
) WITHOUT ROWID;

-- People of the hub.
CREATE TABLE person (handle TEXT PRIMARY KEY) WITHOUT ROWID;

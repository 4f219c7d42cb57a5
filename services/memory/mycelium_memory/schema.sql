-- The tables of the memory service. Times are milliseconds since 1970, 0 for never. Rebuilt from the log at will.
-- Without statistics SQLite prefers a short prefix of a primary key, so queries name the index where it matters.

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

-- Documents as they are now, and those that were removed, of which no text is kept.
CREATE TABLE document (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,          -- digest of the folded key
  key TEXT NOT NULL,                  -- as written
  folded TEXT NOT NULL,               -- what no two documents of a room share
  removed INTEGER NOT NULL,           -- 1 when it is not there now
  text TEXT NOT NULL,                 -- its text, or its value as JSON
  content BLOB NOT NULL,              -- Content without the text and the value
  is_value INTEGER NOT NULL,          -- 1 when `text` is a value
  version INTEGER NOT NULL,
  sequence INTEGER NOT NULL,          -- of the fact of that version
  thread TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  summary TEXT NOT NULL,              -- the beginning of the text, as one line
  PRIMARY KEY (room_id, document_id)
) WITHOUT ROWID;
CREATE INDEX document_folded ON document (room_id, folded);
CREATE INDEX document_listed ON document (room_id, folded) WHERE removed = 0;

-- The tags of documents that are there.
CREATE TABLE tag (
  room_id TEXT NOT NULL,
  tag TEXT NOT NULL,                  -- in lower case
  folded TEXT NOT NULL,               -- the document's key
  document_id TEXT NOT NULL,
  PRIMARY KEY (room_id, tag, folded)
) WITHOUT ROWID;
CREATE INDEX tag_document ON tag (room_id, document_id);

-- The headline of every version; what it held stands in the log.
CREATE TABLE version (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  sequence INTEGER NOT NULL,          -- of its fact
  at INTEGER NOT NULL,                -- never before the version before it
  author TEXT NOT NULL,
  removed INTEGER NOT NULL,           -- 1 for a removal
  summary TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  origin INTEGER NOT NULL,            -- Origin
  moved_from TEXT NOT NULL,           -- a key, or empty
  PRIMARY KEY (room_id, document_id, version)
) WITHOUT ROWID;
CREATE INDEX version_time ON version (room_id, document_id, at, version);

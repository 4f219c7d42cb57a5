-- The tables of the board service, beside those of the kernel's rooms_seen.sql. Times are milliseconds since 1970, 0 for
-- never. Rebuilt from the log at will.

-- Documents that are tasks, as they are now.
CREATE TABLE task (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,          -- as memory's subjects name it
  key TEXT NOT NULL,
  thread TEXT NOT NULL,
  short TEXT NOT NULL,                -- the last eight digits of the thread's id
  title TEXT NOT NULL,
  status TEXT NOT NULL,               -- as the document has it
  moved_status TEXT NOT NULL,         -- what a move made of it, until the document has it too; or empty
  moved_by INTEGER NOT NULL,          -- sequence of that move; 0 for none
  kind TEXT NOT NULL,
  assignee TEXT NOT NULL,             -- a handle, or empty
  blocked_by TEXT NOT NULL,
  fields TEXT NOT NULL,               -- all fields of the user's, as a JSON object
  version INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  closed_at INTEGER NOT NULL,         -- since when nothing is left to do; 0 while something is
  touched_at INTEGER NOT NULL,        -- when something was last done to it, or to its document
  freed_by INTEGER NOT NULL,          -- sequence of the last fact that told that it waits for no other; 0 for none
  -- Where its row stands: decisions (0), what is blocked (1), reviews (2), what else is open (3), what is closed (4),
  -- and there those that moved last first.
  place INTEGER AS (CASE
    WHEN closed_at > 0 THEN 4
    WHEN kind = 'decision' THEN 0
    WHEN blocked_by != '' OR iif(moved_status != '', moved_status, status) = 'blocked' THEN 1
    WHEN iif(moved_status != '', moved_status, status) = 'in_review' THEN 2
    ELSE 3 END) VIRTUAL,
  lateness INTEGER AS (-updated_at) VIRTUAL,
  PRIMARY KEY (room_id, document_id)
) WITHOUT ROWID;
CREATE INDEX task_place ON task (room_id, place, lateness, key);
CREATE INDEX task_closed ON task (room_id, closed_at DESC, key);
CREATE INDEX task_key ON task (room_id, key);
CREATE INDEX task_thread ON task (thread);
CREATE INDEX task_short ON task (room_id, short);

-- Who holds what, until when.
CREATE TABLE claim (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  key TEXT NOT NULL,
  holder TEXT NOT NULL,
  token INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (room_id, document_id)
) WITHOUT ROWID;
CREATE INDEX claim_end ON claim (expires_at);

-- Concerns that are open: what nobody takes up for long is closed by itself.
CREATE INDEX task_concern ON task (touched_at) WHERE kind = 'concern' AND closed_at = 0;

-- What tasks' documents say of other tasks, as it is written there.
CREATE TABLE edge (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  number INTEGER NOT NULL,            -- its place among those of the document
  field TEXT NOT NULL,                -- depends-on or part-of
  target TEXT NOT NULL,               -- the name, folded
  since INTEGER NOT NULL,             -- sequence of the version since when the document says so
  PRIMARY KEY (room_id, document_id, number)
) WITHOUT ROWID;
CREATE INDEX edge_target ON edge (room_id, target, field);

-- What moves ask of documents that don't have it yet, in the order of the moves.
CREATE TABLE asked (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,          -- of the move
  key TEXT NOT NULL,
  move INTEGER NOT NULL,              -- what was done
  by_handle TEXT NOT NULL,            -- who moved it, or empty
  at INTEGER NOT NULL,                -- when
  fields TEXT NOT NULL,               -- what fields become, as a JSON object
  PRIMARY KEY (room_id, document_id, sequence)
) WITHOUT ROWID;

-- What edits of documents did to their tasks, until it is told.
CREATE TABLE edit (
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,          -- of the document's fact
  move INTEGER NOT NULL,              -- what it did
  key TEXT NOT NULL,
  thread TEXT NOT NULL,
  title TEXT NOT NULL,
  status TEXT NOT NULL,
  kind TEXT NOT NULL,
  assignee TEXT NOT NULL,
  blocked_by TEXT NOT NULL,           -- of a document that is gone: where it went
  by_handle TEXT NOT NULL,            -- who edited it
  at INTEGER NOT NULL,
  PRIMARY KEY (room_id, document_id, sequence, move)
) WITHOUT ROWID;

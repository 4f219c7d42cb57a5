-- The tables of the memory service, beside those of the kernel's rooms_seen.sql. Times are milliseconds since 1970, 0 for
-- never. Rebuilt from the log at will.
-- Without statistics SQLite prefers a short prefix of a primary key, so queries name the index where it matters.

-- Who is woken by changes of which documents.
CREATE TABLE subscription (
  room_id TEXT NOT NULL,
  handle TEXT NOT NULL,
  folded TEXT NOT NULL,               -- the pattern that keys match, folded
  pattern TEXT NOT NULL,              -- as written
  set_at INTEGER NOT NULL,
  sequence INTEGER NOT NULL,          -- of its fact: changes before it are none of its
  PRIMARY KEY (room_id, handle, folded)
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
  summary TEXT NOT NULL,              -- the beginning of the text, as one line; else the title
  PRIMARY KEY (room_id, document_id)
) WITHOUT ROWID;
CREATE INDEX document_folded ON document (room_id, folded);
CREATE INDEX document_thread ON document (room_id, substr(thread, -8));
CREATE INDEX document_sequence ON document (sequence);
CREATE INDEX document_changed ON document (room_id, updated_at);
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

-- Which documents may be meant by the links of others. One may be meant by a link that leads elsewhere: see `rather`.
CREATE TABLE link (
  room_id TEXT NOT NULL,
  target TEXT NOT NULL,               -- a key, folded, whether or not it is there
  source TEXT NOT NULL,               -- key of the document that has the link, folded; never the target
  number INTEGER NOT NULL,            -- its place among the links of that document
  rather TEXT NOT NULL,               -- the key that is meant if it is there, folded; or empty
  PRIMARY KEY (room_id, target, source, number)
) WITHOUT ROWID;
CREATE INDEX link_source ON link (room_id, source);

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
  conflicted INTEGER NOT NULL,        -- 1 for an edit by hand that met a write
  PRIMARY KEY (room_id, document_id, version)
) WITHOUT ROWID;
CREATE INDEX version_time ON version (room_id, document_id, at, version);
CREATE INDEX version_sequence ON version (room_id, sequence);

-- Sections of documents as they are now, and the words of each as the index has them.
CREATE TABLE passage (
  passage INTEGER PRIMARY KEY,        -- 4096 times the sequence of its version, and which section it is
  room_id TEXT NOT NULL,
  document_id TEXT NOT NULL,
  slug TEXT NOT NULL,                 -- what a link names it by; empty for what stands before the first heading
  title TEXT NOT NULL,
  start INTEGER NOT NULL,             -- where it begins in the text, in characters
  end INTEGER NOT NULL,
  words INTEGER NOT NULL,             -- how many
  said TEXT NOT NULL
);
CREATE INDEX passage_document ON passage (room_id, document_id, slug);
CREATE INDEX passage_length ON passage (passage, words); -- so that ranking reads no texts

-- What a search of a room has to know of all of its sections.
CREATE TABLE shelf (
  room_id TEXT PRIMARY KEY,
  mark INTEGER NOT NULL,              -- what its words begin with in the index: the sequence of its first document
  passages INTEGER NOT NULL,
  words INTEGER NOT NULL,             -- of all of them
  sequence INTEGER NOT NULL           -- of the last fact of a document
) WITHOUT ROWID;

-- The index of words, by passage; the texts themselves are not kept twice. Kept in step by the triggers, whoever
-- changes a passage. The two beneath it read it: how many passages have a word, and where each word stands.
CREATE VIRTUAL TABLE passage_words USING fts5 (said, content = '', columnsize = 0, tokenize = 'ascii');
CREATE VIRTUAL TABLE passage_count USING fts5vocab (passage_words, row);
CREATE VIRTUAL TABLE passage_place USING fts5vocab (passage_words, instance);
CREATE TRIGGER passage_said AFTER INSERT ON passage BEGIN
  INSERT INTO passage_words (rowid, said) VALUES (new.passage, new.said);
END;
CREATE TRIGGER passage_unsaid AFTER DELETE ON passage BEGIN
  INSERT INTO passage_words (passage_words, rowid, said) VALUES ('delete', old.passage, old.said);
END;

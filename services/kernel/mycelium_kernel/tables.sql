CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- The state of every entity and the sequence of its last fact: what commands decide from.
CREATE TABLE entity (subject TEXT PRIMARY KEY, sequence INTEGER NOT NULL, state BLOB NOT NULL) WITHOUT ROWID;
-- Which fact answered which key, for repeats that come later than the log's own window.
CREATE TABLE answered (
  sequence INTEGER PRIMARY KEY, actor TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, room_id TEXT NOT NULL,
  UNIQUE (actor, key)
);
CREATE INDEX answered_room ON answered (room_id);
-- The facts of rooms in order, for watchers that missed some.
CREATE TABLE feed (sequence INTEGER PRIMARY KEY, room_id TEXT NOT NULL, type TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX feed_room ON feed (room_id, sequence);
-- A hash for every fact that was read, each over the one before it in its room (`chain`).
CREATE TABLE chain (
  room_id TEXT NOT NULL, sequence INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (room_id, sequence)
) WITHOUT ROWID;
-- Rooms that were erased; later facts of them are ignored. `state` says what is left of it in this file (`sweeping`).
CREATE TABLE erased (room_id TEXT PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX erased_left ON erased (state) WHERE state < 2;

-- Events that gateways with an embedded engine give each other: each keeps all of them, and reads here what the others had.

CREATE TABLE event_batches (
  -- In the order of commits: who writes holds a lock.
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  gateway_id text COLLATE "C" NOT NULL,
  newest_at timestamptz NOT NULL,
  -- gzip of one event a line, as JSON.
  data bytea NOT NULL
);
ALTER TABLE event_batches ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX event_batches_newest ON event_batches (newest_at);

-- How each gateway sees its workers, written every few seconds: an alert must not depend on which gateway looks.
CREATE TABLE worker_views (
  gateway_id text COLLATE "C" PRIMARY KEY,
  -- JSON: a list of models, ids, and whether each is up.
  workers text NOT NULL,
  at timestamptz NOT NULL
);

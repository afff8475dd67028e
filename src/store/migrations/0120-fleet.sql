-- The gateways of the installation as they last told of themselves, and the workers that get no new requests.
CREATE TABLE gateways (
  id text PRIMARY KEY,
  -- What `umpire status` shows of it, as JSON.
  report text NOT NULL,
  seen_at timestamptz NOT NULL
);
CREATE TABLE drained_workers (
  worker_id text PRIMARY KEY,
  drained_at timestamptz NOT NULL
);

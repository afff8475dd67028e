-- What gateways have counted together. Unlogged: a limit that starts again after a crash of the database harms nobody, and
-- nothing of it need be written ahead.
CREATE UNLOGGED TABLE rate_buckets (
  -- SHA-256 of what is counted: no addresses and no names are kept.
  key text COLLATE "C" PRIMARY KEY,
  -- Unix milliseconds by the database's clock at which the whole burst is available again.
  arrival_ms double precision NOT NULL,
  interval_ms double precision NOT NULL CHECK (interval_ms > 0)
) WITH (fillfactor = 70);

-- The gateways that count: without the database each goes on with its share.
CREATE UNLOGGED TABLE rate_gateways (
  gateway_id text COLLATE "C" PRIMARY KEY,
  seen_at timestamptz NOT NULL
);

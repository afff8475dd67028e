-- Alert rules, the alerts that they raise, and what carries these out of the house: webhooks and e-mail.

CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  url text NOT NULL CHECK (url <> ''),
  description text NOT NULL,
  events text[] NOT NULL,
  enabled boolean NOT NULL,
  disabled_reason text CHECK (disabled_reason IN ('gone')),
  -- Both sides sign with it, so that it cannot be a hash; it is never in a view, a log or the audit log.
  secret text NOT NULL,
  previous_secret text,
  previous_secret_expires_at timestamptz,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))
);
CREATE INDEX webhooks_page ON webhooks (organization_id, id);

CREATE TABLE alert_rules (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text NOT NULL CHECK (name <> ''),
  kind text NOT NULL CHECK (kind IN ('balance_below', 'spend_above', 'refill_failed', 'error_rate', 'latency', 'drift',
    'low_confidence', 'key_expiring', 'worker_down')),
  threshold double precision,
  window_minutes integer CHECK (window_minutes > 0),
  -- JSON, as the channels are.
  target text NOT NULL,
  channels text NOT NULL,
  enabled boolean NOT NULL,
  managed_by text CHECK (managed_by IN ('spend_controls')),
  state text NOT NULL DEFAULT 'unknown' CHECK (state IN ('ok', 'firing', 'unknown')),
  state_since timestamptz NOT NULL,
  value double precision,
  detail text NOT NULL DEFAULT '',
  evaluated_at timestamptz,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1
);
CREATE INDEX alert_rules_page ON alert_rules (organization_id, id);
-- One rule follows each of an account's warnings in each of its organizations.
CREATE UNIQUE INDEX alert_rules_managed ON alert_rules (organization_id, kind) WHERE managed_by IS NOT NULL;

-- Each change of a rule's state; its id is the id of the event that receivers see.
CREATE TABLE alerts (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  rule_id text COLLATE "C" REFERENCES alert_rules ON DELETE SET NULL,
  rule_name text NOT NULL,
  kind text NOT NULL,
  state text NOT NULL CHECK (state IN ('firing', 'resolved')),
  value double precision,
  threshold double precision,
  detail text NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX alerts_page ON alerts (organization_id, id);
CREATE INDEX alerts_rule ON alerts (rule_id, id);

-- One event for one receiver: gateways claim a row under a lease and try until it is delivered or given up.
CREATE TABLE deliveries (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  webhook_id text COLLATE "C" REFERENCES webhooks ON DELETE CASCADE,
  -- Of an e-mail.
  address text,
  event_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  body text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed', 'cancelled')),
  attempts integer NOT NULL DEFAULT 0,
  -- Attempts since it was last asked for: how long the next one waits follows from it.
  tries integer NOT NULL DEFAULT 0,
  status integer,
  duration_ms integer,
  error text,
  created_at timestamptz NOT NULL,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz,
  leased_until timestamptz,
  CHECK ((webhook_id IS NULL) <> (address IS NULL)),
  CHECK ((state = 'pending') = (next_attempt_at IS NOT NULL))
);
CREATE INDEX deliveries_page ON deliveries (webhook_id, id);
CREATE INDEX deliveries_event ON deliveries (event_id);
CREATE INDEX deliveries_pending ON deliveries (next_attempt_at) WHERE state = 'pending';
CREATE INDEX deliveries_queue ON deliveries (organization_id) WHERE state = 'pending';
CREATE INDEX deliveries_time ON deliveries (created_at);

CREATE TRIGGER announce AFTER INSERT ON deliveries
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

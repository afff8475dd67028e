-- What a key may do beyond its permissions: null means no limit of its own.
ALTER TABLE api_keys
  ADD COLUMN tokens_per_minute bigint CHECK (tokens_per_minute > 0),
  ADD COLUMN allowed_models text[] CHECK (cardinality(allowed_models) > 0),
  ADD COLUMN allowed_networks text[] CHECK (cardinality(allowed_networks) > 0),
  -- A list of {period, cutoff_cents, warning_cents}, at most one of each period.
  ADD COLUMN budgets jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(budgets) = 'array');

DROP TRIGGER announce ON api_keys;
CREATE TRIGGER announce AFTER UPDATE OF name, permissions, secret_hash, previous_expires_at, expires_at, revoked_at,
  rate_limit_per_minute, rate_limit_burst, tokens_per_minute, allowed_models, allowed_networks, budgets OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

-- What each key spent on each UTC day; written with the ledger's entries. A budget is compared with the sum of its days.
CREATE TABLE key_spend (
  key_id text COLLATE "C" NOT NULL,
  day date NOT NULL,
  spent_ticks bigint NOT NULL,
  PRIMARY KEY (key_id, day)
);

-- Leases are also of budgets: there billing_account_id is the key, a slash and the period, and month is its first day.
ALTER TABLE leases DROP CONSTRAINT leases_billing_account_id_fkey;

-- The budgets whose latest request was refused although it was the cheapest, in the period that begins on this day.
CREATE TABLE budget_refusals (
  budget text COLLATE "C" NOT NULL,
  starts_on date NOT NULL,
  PRIMARY KEY (budget, starts_on)
);

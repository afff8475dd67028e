-- People, organizations, their keys and sessions, and what they may use.
-- Identifiers are compared byte by byte (COLLATE "C"): they sort by time, whatever the locale of the database.

CREATE TABLE users (
  id text COLLATE "C" PRIMARY KEY,
  email text NOT NULL CHECK (email <> ''),
  name text,
  password_hash text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

CREATE TABLE billing_accounts (
  id text COLLATE "C" PRIMARY KEY,
  email text NOT NULL CHECK (email <> ''),
  mode text NOT NULL CHECK (mode IN ('prepaid', 'postpaid')),
  -- 1e-10 USD; always the sum of the account's ledger.
  balance_ticks bigint NOT NULL DEFAULT 0,
  balance_checked_at timestamptz,
  provider text NOT NULL,
  -- Null until the provider knows the account: prepaid accounts are then provisioning_failed.
  provider_customer_id text,
  payment_method_id text,
  payment_method_description text,
  auto_refill_enabled boolean NOT NULL DEFAULT false,
  auto_refill_threshold_cents bigint CHECK (auto_refill_threshold_cents >= 0),
  auto_refill_recharge_to_cents bigint CHECK (auto_refill_recharge_to_cents > 0),
  low_balance_warning_cents bigint CHECK (low_balance_warning_cents > 0),
  spend_cutoff_cents bigint CHECK (spend_cutoff_cents > 0),
  spend_warning_cents bigint CHECK (spend_warning_cents > 0),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  CHECK (payment_method_description IS NULL OR payment_method_id IS NOT NULL),
  CHECK (NOT auto_refill_enabled OR (auto_refill_threshold_cents IS NOT NULL AND auto_refill_recharge_to_cents IS NOT NULL)),
  CHECK (auto_refill_recharge_to_cents > auto_refill_threshold_cents),
  CHECK (low_balance_warning_cents IS NULL OR mode = 'prepaid'),
  CHECK (spend_warning_cents < spend_cutoff_cents)
);
CREATE UNIQUE INDEX billing_accounts_customer ON billing_accounts (provider, provider_customer_id);

CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL CHECK (name <> ''),
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  is_personal boolean NOT NULL,
  -- Null means the default of the contract, 30 days; zero stores nothing.
  stored_responses_days integer CHECK (stored_responses_days >= 0),
  -- Null means the configured default.
  rate_limit_per_minute integer CHECK (rate_limit_per_minute > 0),
  rate_limit_burst integer CHECK (rate_limit_burst > 0),
  -- Null means every region.
  visible_regions text[],
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  deleted_at timestamptz,
  version bigint NOT NULL DEFAULT 1
);
CREATE INDEX organizations_billing_account ON organizations (billing_account_id);

CREATE TABLE memberships (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('primary_owner', 'owner', 'member')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE invitations (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  email text NOT NULL CHECK (email <> ''),
  role text NOT NULL CHECK (role IN ('primary_owner', 'owner', 'member')),
  token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  invited_by text COLLATE "C" NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  accepted_at timestamptz,
  accepted_by text COLLATE "C" REFERENCES users,
  revoked_at timestamptz,
  CHECK ((accepted_at IS NULL) = (accepted_by IS NULL)),
  CHECK (accepted_at IS NULL OR revoked_at IS NULL)
);
CREATE INDEX invitations_organization ON invitations (organization_id, id);
CREATE UNIQUE INDEX invitations_open ON invitations (organization_id, lower(email))
  WHERE accepted_at IS NULL AND revoked_at IS NULL;

CREATE TABLE sessions (
  id text COLLATE "C" PRIMARY KEY,
  token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  ip text,
  user_agent text,
  created_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  -- However busy the session is.
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE one_time_links (
  token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  used_at timestamptz
);

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text NOT NULL CHECK (name <> ''),
  permissions text[] NOT NULL
    CHECK (permissions <@ ARRAY['inference', 'api-read', 'api-write', 'api-admin']),
  scope text NOT NULL CHECK (scope IN ('organization', 'user')),
  -- Whose role a user-scoped key carries.
  user_id text COLLATE "C" REFERENCES users,
  secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
  -- After a rotation the secret before it works until this moment.
  previous_secret_hash bytea CHECK (octet_length(previous_secret_hash) = 32),
  previous_expires_at timestamptz,
  -- Null for a key that the installation made for itself.
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  rate_limit_per_minute integer CHECK (rate_limit_per_minute > 0),
  rate_limit_burst integer CHECK (rate_limit_burst > 0),
  version bigint NOT NULL DEFAULT 1,
  CHECK ((scope = 'user') = (user_id IS NOT NULL)),
  CHECK ((previous_secret_hash IS NULL) = (previous_expires_at IS NULL))
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, id);
CREATE INDEX api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE model_access (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  model_sku text COLLATE "C" NOT NULL CHECK (model_sku <> ''),
  state text NOT NULL CHECK (state IN ('pending', 'grant', 'deny')),
  requested_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  decided_at timestamptz,
  UNIQUE (organization_id, model_sku),
  CHECK ((state = 'pending') = (decided_at IS NULL))
);

CREATE TABLE routing_policies (
  organization_id text COLLATE "C" PRIMARY KEY REFERENCES organizations,
  mode text NOT NULL CHECK (mode IN ('nearest', 'ordered', 'required')),
  fallback text NOT NULL CHECK (fallback IN ('disabled', 'same_country', 'visible_regions')),
  regions text[] NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  CHECK (mode <> 'required' OR cardinality(regions) > 0)
);

CREATE TABLE idempotency_keys (
  -- Principal, method and path, joined by the caller.
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
  -- Which attempt holds the key: one that was given up for dead cannot complete what another has taken over.
  attempt_id text NOT NULL,
  running_until timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- Both null while the first request runs.
  status integer,
  body text,
  PRIMARY KEY (scope, key),
  CHECK (body IS NULL OR status IS NOT NULL)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE settings (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL,
  updated_at timestamptz NOT NULL
);

-- Caches of principals, policies and access hear on this channel what to forget: "table:identifier".
CREATE FUNCTION announce_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('umpire_changes', TG_TABLE_NAME || ':' ||
    (CASE TG_OP WHEN 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END ->> TG_ARGV[0]));
  RETURN NULL;
END $$;

CREATE TRIGGER announce AFTER UPDATE OR DELETE ON organizations
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON memberships
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
-- Not for last_used_at, which changes with every use.
CREATE TRIGGER announce AFTER UPDATE OF name, permissions, secret_hash, previous_expires_at, expires_at, revoked_at,
  rate_limit_per_minute, rate_limit_burst OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');
CREATE TRIGGER announce AFTER UPDATE OF revoked_at OR DELETE ON sessions
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON model_access
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON routing_policies
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
CREATE TRIGGER announce AFTER UPDATE OF mode, payment_method_id, provider_customer_id, spend_cutoff_cents
  OR DELETE ON billing_accounts
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

-- Workload identity: whom an organization trusts to vouch for its workloads, and the keys that sign what they get.

CREATE TABLE workload_identity_providers (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text NOT NULL CHECK (name <> ''),
  active boolean NOT NULL,
  config jsonb NOT NULL CHECK (config ->> 'type' IN ('oidc', 'x509')),
  attribute_condition text,
  attribute_transformations jsonb NOT NULL,
  authorization_rules jsonb NOT NULL,
  -- Grows with every accepted update; a token of another revision is refused.
  policy_revision bigint NOT NULL DEFAULT 1 CHECK (policy_revision > 0),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX workload_identity_providers_name ON workload_identity_providers (organization_id, name);
CREATE INDEX workload_identity_providers_organization ON workload_identity_providers (organization_id, id);

-- Public halves only: a private key lives in the memory of the process that made it and dies with it.
CREATE TABLE workload_signing_keys (
  id text COLLATE "C" PRIMARY KEY,
  public_jwk jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  -- When the last token that it may have signed has expired.
  expires_at timestamptz NOT NULL
);
CREATE INDEX workload_signing_keys_expiry ON workload_signing_keys (expires_at);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON workload_identity_providers
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');
CREATE TRIGGER announce AFTER INSERT OR DELETE ON workload_signing_keys
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

-- Who did what: one chain of hashes per organization, in which no entry can be changed or removed unseen.

CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- Place in the organization's chain, from 1.
  position bigint NOT NULL CHECK (position > 0),
  actor_kind text NOT NULL CHECK (actor_kind IN ('session', 'key', 'workload', 'system')),
  actor_id text,
  ip text,
  user_agent text,
  action text NOT NULL CHECK (action <> ''),
  resource_type text NOT NULL CHECK (resource_type <> ''),
  resource_id text,
  before jsonb,
  after jsonb,
  at timestamptz NOT NULL,
  prev_hash bytea NOT NULL CHECK (octet_length(prev_hash) = 32),
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  UNIQUE (organization_id, position)
);
CREATE INDEX audit_log_organization ON audit_log (organization_id, id);

-- The end of each chain: locked by whoever appends, and what shows that the newest entries are all there.
CREATE TABLE audit_heads (
  organization_id text COLLATE "C" PRIMARY KEY REFERENCES organizations,
  position bigint NOT NULL,
  hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Cannot % on %: entries are only ever added', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

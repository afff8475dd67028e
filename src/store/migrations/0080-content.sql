-- What organizations keep of their requests. Content is encrypted by the gateway; the database never sees it in the clear.

CREATE TABLE content_settings (
  organization_id text COLLATE "C" PRIMARY KEY REFERENCES organizations,
  keep text NOT NULL CHECK (keep IN ('nothing', 'answers', 'evidence_and_answers')),
  sample_rate double precision NOT NULL CHECK (sample_rate >= 0 AND sample_rate <= 1),
  retention_days integer NOT NULL CHECK (retention_days BETWEEN 1 AND 365),
  -- JSON: a list of names and patterns.
  redact_patterns text NOT NULL,
  redact_question_set text,
  updated_at timestamptz NOT NULL,
  -- Counts the changes.
  version bigint NOT NULL DEFAULT 1
);

-- A key without a row keeps what its organization has set.
CREATE TABLE key_content_settings (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES api_keys,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  keep text NOT NULL CHECK (keep IN ('nothing', 'answers', 'evidence_and_answers')),
  sample_rate double precision NOT NULL CHECK (sample_rate >= 0 AND sample_rate <= 1),
  -- Null: the organization's.
  retention_days integer CHECK (retention_days BETWEEN 1 AND 365),
  updated_at timestamptz NOT NULL
);
CREATE INDEX key_content_settings_organization ON key_content_settings (organization_id);

CREATE TABLE content (
  seq_id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  api_key_id text COLLATE "C",
  -- When the request began.
  at timestamptz NOT NULL,
  level text NOT NULL CHECK (level IN ('answers', 'evidence_and_answers')),
  -- By the retention at that time; a shorter one that the organization sets later holds too.
  expires_at timestamptz NOT NULL,
  state text NOT NULL CHECK (state IN ('kept', 'deleted', 'expired')),
  -- A keyed hash of the caller's own reference; gone with the content.
  reference_hash text COLLATE "C",
  -- Null once it is deleted or has expired.
  sealed bytea,
  CHECK ((state = 'kept') = (sealed IS NOT NULL))
);
CREATE INDEX content_organization ON content (organization_id, at, seq_id);
CREATE INDEX content_kept ON content (organization_id, at) WHERE state = 'kept';
CREATE INDEX content_expiry ON content (expires_at) WHERE state = 'kept';
CREATE INDEX content_reference ON content (organization_id, reference_hash) WHERE reference_hash IS NOT NULL;

-- Deletions by time or reference, for content that a gateway has not stored yet.
CREATE TABLE content_deletions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- Content of requests that began before it.
  before timestamptz NOT NULL,
  -- Null: whatever the reference.
  reference_hashes text[],
  requested_at timestamptz NOT NULL
);
CREATE INDEX content_deletions_organization ON content_deletions (organization_id, before);

-- What should have been kept and was not.
CREATE TABLE content_dropped (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  reason text NOT NULL,
  count bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, reason)
);

-- How far each gateway's journal of content is stored.
CREATE TABLE content_journals (
  gateway_id text COLLATE "C" PRIMARY KEY,
  segment bigint NOT NULL,
  segment_offset bigint NOT NULL
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON content_settings
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON key_content_settings
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');

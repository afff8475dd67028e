-- Names of an organization that stand for models of the catalog.

CREATE TABLE virtual_models (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text COLLATE "C" NOT NULL CHECK (name <> ''),
  description text NOT NULL,
  -- One of alias, fallback, split and cascade, as the API has it.
  rule jsonb NOT NULL,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  UNIQUE (organization_id, name)
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON virtual_models
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');

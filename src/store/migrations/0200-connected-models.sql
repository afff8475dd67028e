-- Models at other servers that were connected by address and key, for every organization; the row is of the operator's.
CREATE TABLE connected_models (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  sku text COLLATE "C" NOT NULL UNIQUE,
  -- Where it is and what it costs, as the API has it.
  settings jsonb NOT NULL,
  -- Encrypted with the keys of content; null where the server wants none.
  sealed_key text,
  -- How its probe found that it decides.
  decides text,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON connected_models
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');

-- What the last check of a model at another server found, connected or configured.
CREATE TABLE model_checks (
  sku text COLLATE "C" PRIMARY KEY,
  found jsonb NOT NULL
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON model_checks
  FOR EACH ROW EXECUTE FUNCTION announce_change('sku');

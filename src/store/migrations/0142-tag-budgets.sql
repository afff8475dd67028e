-- What may be spent on requests with a tag. Spend and leases are kept as those of keys, under the id of the row.
CREATE TABLE tag_budgets (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  tag_key text NOT NULL CHECK (tag_key <> ''),
  tag_value text NOT NULL CHECK (tag_value <> ''),
  -- A list of {period, cutoff_cents, warning_cents}, at most one of each period.
  budgets jsonb NOT NULL CHECK (jsonb_typeof(budgets) = 'array' AND budgets <> '[]'),
  updated_at timestamptz NOT NULL,
  UNIQUE (organization_id, tag_key, tag_value)
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON tag_budgets
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');

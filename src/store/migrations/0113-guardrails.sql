-- Question sets that check what generating models read and write.

CREATE TABLE guardrails (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text NOT NULL CHECK (name <> ''),
  -- NAME or NAME@VERSION of a question set; it may not exist yet.
  question_set text NOT NULL CHECK (question_set <> ''),
  -- Null: every key, every model.
  api_key_id text COLLATE "C",
  model text,
  stage text NOT NULL CHECK (stage IN ('input', 'output', 'both')),
  action text NOT NULL CHECK (action IN ('block', 'flag', 'redact', 'route')),
  route_model text CHECK ((route_model IS NULL) = (action <> 'route')),
  on_abstain text NOT NULL CHECK (on_abstain IN ('pass', 'act')),
  on_error text NOT NULL CHECK (on_error IN ('open', 'closed')),
  release text NOT NULL CHECK (release IN ('window', 'end')),
  window_characters integer NOT NULL,
  hold_back_characters integer NOT NULL,
  enabled boolean NOT NULL,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  CHECK (action <> 'route' OR stage = 'input'),
  CHECK (hold_back_characters < window_characters)
);
CREATE INDEX guardrails_page ON guardrails (organization_id, id);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON guardrails
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');

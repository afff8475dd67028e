-- Question sets: saved questions of an organization, their versions, labels, examples, taught artefacts and frozen cases.
-- JSON that must come back to the byte is kept as text.

CREATE TABLE question_sets (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text COLLATE "C" NOT NULL CHECK (name <> ''),
  description text NOT NULL,
  -- The number of the newest version.
  latest integer NOT NULL CHECK (latest > 0),
  -- What answers a share of the requests beside the published version: a version, another model, or both.
  shadow_version integer,
  shadow_model text,
  shadow_share double precision NOT NULL DEFAULT 0 CHECK (shadow_share >= 0 AND shadow_share <= 1),
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- Counts the changes, those of labels too.
  revision bigint NOT NULL DEFAULT 1,
  UNIQUE (organization_id, name)
);

CREATE TABLE question_set_versions (
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  number integer NOT NULL CHECK (number > 0),
  -- SHA-256 of the content, in hexadecimal.
  hash text COLLATE "C" NOT NULL,
  content text NOT NULL,
  note text NOT NULL,
  created_by text COLLATE "C" REFERENCES users,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (set_id, number)
);

CREATE FUNCTION refuse_version_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a version of a question set cannot be changed';
END $$;
CREATE TRIGGER immutable BEFORE UPDATE ON question_set_versions
  FOR EACH ROW EXECUTE FUNCTION refuse_version_change();

CREATE TABLE question_set_labels (
  set_id text COLLATE "C" NOT NULL,
  label text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  updated_by text COLLATE "C" REFERENCES users,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (set_id, label),
  FOREIGN KEY (set_id, number) REFERENCES question_set_versions ON DELETE CASCADE
);

-- What teaching found for one question; versions name it by its hash.
CREATE TABLE question_set_artefacts (
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  hash text COLLATE "C" NOT NULL,
  question text NOT NULL,
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (set_id, hash)
);

CREATE TABLE question_set_examples (
  id text COLLATE "C" PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  input text NOT NULL,
  input_hash text COLLATE "C" NOT NULL,
  split text NOT NULL CHECK (split IN ('train', 'held_out')),
  -- JSON: the right answer by the name of the question.
  labels text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  UNIQUE (set_id, input_hash)
);
CREATE INDEX question_set_examples_page ON question_set_examples (set_id, id);

CREATE TABLE question_set_cases (
  id text COLLATE "C" PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  input text NOT NULL,
  input_hash text COLLATE "C" NOT NULL,
  expected text NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (set_id, input_hash)
);
CREATE INDEX question_set_cases_page ON question_set_cases (set_id, id);

-- Work on a set that takes long: gateways claim a row and renew their lease on it.
CREATE TABLE question_set_jobs (
  id text COLLATE "C" PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  organization_id text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('teach', 'check', 'compare')),
  state text NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  input text NOT NULL,
  -- Who is charged and who is recorded as the caller.
  principal text NOT NULL,
  progress double precision NOT NULL DEFAULT 0,
  result text,
  error text,
  cancel_requested boolean NOT NULL DEFAULT false,
  attempts integer NOT NULL DEFAULT 0,
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz
);
CREATE INDEX question_set_jobs_page ON question_set_jobs (set_id, id);
CREATE INDEX question_set_jobs_open ON question_set_jobs (id) WHERE state IN ('queued', 'running');

-- How a shadow's answer differed; the evidence is not kept.
CREATE TABLE question_set_shadow_results (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  at timestamptz NOT NULL,
  question text NOT NULL,
  version integer NOT NULL,
  shadow_version integer NOT NULL,
  shadow_model text NOT NULL,
  verdict text NOT NULL,
  shadow_verdict text NOT NULL,
  confidence double precision NOT NULL,
  shadow_confidence double precision NOT NULL
);
CREATE INDEX question_set_shadow_results_set ON question_set_shadow_results (set_id, id);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON question_sets
  FOR EACH ROW EXECUTE FUNCTION announce_change('organization_id');
CREATE TRIGGER announce AFTER INSERT OR UPDATE OF cancel_requested ON question_set_jobs
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

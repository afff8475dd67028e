-- Batches: a file of requests, cut into parts of some lines that gateways claim under leases.

CREATE TABLE batches (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- JSON: who is charged and recorded as the caller.
  principal text NOT NULL,
  endpoint text NOT NULL,
  input_file_id text COLLATE "C" NOT NULL,
  -- Where the input lies, also when its file is deleted meanwhile; nothing once the batch has ended.
  storage text COLLATE "C" NOT NULL,
  input_sha256 text COLLATE "C",
  completion_window text NOT NULL,
  -- JSON, as are the errors.
  metadata text,
  status text NOT NULL CHECK (status IN
    ('validating', 'in_progress', 'finalizing', 'cancelling', 'completed', 'failed', 'expired', 'cancelled')),
  -- What it will be once it is finalized.
  ending text NOT NULL DEFAULT 'completed' CHECK (ending IN ('completed', 'failed', 'expired', 'cancelled')),
  errors text,
  output_file_id text COLLATE "C",
  error_file_id text COLLATE "C",
  total integer NOT NULL DEFAULT 0,
  completed integer NOT NULL DEFAULT 0,
  failed integer NOT NULL DEFAULT 0,
  -- Of whoever validates or finalizes it.
  attempts integer NOT NULL DEFAULT 0,
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  in_progress_at timestamptz,
  cancelling_at timestamptz,
  finalizing_at timestamptz,
  finished_at timestamptz,
  FOREIGN KEY (organization_id, storage, input_sha256) REFERENCES file_blobs
);
CREATE INDEX batches_organization ON batches (organization_id, id);
CREATE INDEX batches_open ON batches (id) WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling');
CREATE INDEX batches_blob ON batches (organization_id, storage, input_sha256);

CREATE TABLE batch_parts (
  batch_id text COLLATE "C" NOT NULL REFERENCES batches ON DELETE CASCADE,
  number integer NOT NULL CHECK (number >= 0),
  organization_id text COLLATE "C" NOT NULL,
  storage text COLLATE "C" NOT NULL,
  -- Of its first line, from 1.
  first_line integer NOT NULL,
  -- Where it lies in the input, in bytes.
  start bigint NOT NULL,
  length bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('waiting', 'running', 'done')),
  attempts integer NOT NULL DEFAULT 0,
  leased_until timestamptz,
  -- When it was claimed first: its lines are charged to this time, whoever ends them.
  started_at timestamptz,
  result_sha256 text COLLATE "C",
  PRIMARY KEY (batch_id, number),
  FOREIGN KEY (organization_id, storage, result_sha256) REFERENCES file_blobs,
  CHECK ((state = 'done') = (result_sha256 IS NOT NULL))
);
CREATE INDEX batch_parts_open ON batch_parts (batch_id, number) WHERE state <> 'done';
CREATE INDEX batch_parts_running ON batch_parts (organization_id) WHERE state = 'running';
CREATE INDEX batch_parts_blob ON batch_parts (organization_id, storage, result_sha256) WHERE result_sha256 IS NOT NULL;

CREATE TRIGGER announce AFTER INSERT OR UPDATE OF status ON batches
  FOR EACH ROW EXECUTE FUNCTION announce_change('id');

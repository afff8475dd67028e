-- Jobs are taken from organizations in turn: the one whose last job began longest ago is next.
CREATE INDEX question_set_jobs_turns ON question_set_jobs (organization_id, started_at);

-- Calibrations of the configuration that have become sets, so that a set that is deleted or renamed is not made again.
CREATE TABLE question_set_calibrations (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- As the configuration has it.
  name text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, name)
);

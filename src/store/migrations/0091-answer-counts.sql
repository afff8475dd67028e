-- How a set's questions were answered, by the hour: counts, never content. Several gateways add to one row.
CREATE TABLE set_answer_counts (
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  version integer NOT NULL,
  question text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  abstained boolean NOT NULL,
  -- Empty where the set abstained.
  answer text COLLATE "C" NOT NULL,
  rows bigint NOT NULL,
  -- By confidence, in tenths.
  bin_0 bigint NOT NULL, bin_1 bigint NOT NULL, bin_2 bigint NOT NULL, bin_3 bigint NOT NULL, bin_4 bigint NOT NULL,
  bin_5 bigint NOT NULL, bin_6 bigint NOT NULL, bin_7 bigint NOT NULL, bin_8 bigint NOT NULL, bin_9 bigint NOT NULL,
  latency_ms bigint NOT NULL,
  cost_ticks bigint NOT NULL,
  PRIMARY KEY (set_id, hour, version, question, abstained, answer)
);
CREATE INDEX set_answer_counts_hour ON set_answer_counts (hour);

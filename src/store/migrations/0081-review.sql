-- The review queue of question sets. Evidence and answers are not here: they are read from the kept content.

ALTER TABLE question_sets ADD COLUMN review_sample_rate double precision NOT NULL DEFAULT 0.02
  CHECK (review_sample_rate >= 0 AND review_sample_rate <= 1);

ALTER TABLE question_set_examples ADD COLUMN source text NOT NULL DEFAULT 'added'
  CHECK (source IN ('added', 'review'));

CREATE TABLE review_items (
  id text COLLATE "C" PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  organization_id text COLLATE "C" NOT NULL,
  seq_id text COLLATE "C" NOT NULL,
  question text NOT NULL,
  -- The version that answered.
  version integer NOT NULL,
  reason text NOT NULL CHECK (reason IN ('abstained', 'low_confidence', 'shadow_differs', 'audit')),
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done')),
  -- Two reviewers label it.
  second_look boolean NOT NULL,
  created_at timestamptz NOT NULL,
  UNIQUE (set_id, seq_id, question)
);
CREATE INDEX review_items_page ON review_items (set_id, state, id);
CREATE INDEX review_items_sequence ON review_items (seq_id);

CREATE TABLE reviews (
  item_id text COLLATE "C" NOT NULL REFERENCES review_items ON DELETE CASCADE,
  -- The user, or the key of the organization.
  reviewer text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" REFERENCES users,
  decision text NOT NULL CHECK (decision IN ('label', 'not_sure', 'skip')),
  -- JSON.
  label text,
  -- Whether the label is the answer; null where the set abstained or there is no label.
  is_answer boolean,
  -- What the label changed, so that it can be taken back: the example, and its label before (JSON, null: none).
  example_id text COLLATE "C",
  example_is_new boolean NOT NULL DEFAULT false,
  label_before text,
  at timestamptz NOT NULL,
  PRIMARY KEY (item_id, reviewer),
  CHECK ((decision = 'label') = (label IS NOT NULL))
);
CREATE INDEX reviews_example ON reviews (example_id) WHERE example_id IS NOT NULL;

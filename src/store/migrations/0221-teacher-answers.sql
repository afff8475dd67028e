-- What larger models answered about kept requests of a set, as later stages of a cascade or as shadows: distilling takes them as labels.
-- Never a text; a request whose content is deleted or has expired teaches nothing more.
CREATE TABLE question_set_teacher_answers (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  set_id text COLLATE "C" NOT NULL REFERENCES question_sets ON DELETE CASCADE,
  seq_id text COLLATE "C" NOT NULL,
  question text NOT NULL,
  -- Whose question it was.
  version integer NOT NULL,
  model text NOT NULL,
  -- JSON, as labels of examples.
  label text NOT NULL,
  confidence double precision NOT NULL,
  cost_ticks bigint NOT NULL
);
CREATE INDEX question_set_teacher_answers_request ON question_set_teacher_answers (set_id, seq_id);
CREATE INDEX question_set_teacher_answers_newest ON question_set_teacher_answers (set_id, id);

-- The kept request whose text a model's labels are of: the example goes when its content is deleted.
ALTER TABLE question_set_examples ADD COLUMN seq_id text COLLATE "C";
CREATE INDEX question_set_examples_seq ON question_set_examples (seq_id) WHERE seq_id IS NOT NULL;

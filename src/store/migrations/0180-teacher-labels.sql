-- Answers of a larger model to texts of a set, beside people's labels and never among them: JSON by the name of the question, each with the
-- model, its confidence and what it cost.
ALTER TABLE question_set_examples
  ADD COLUMN teacher_labels text NOT NULL DEFAULT '{}',
  DROP CONSTRAINT question_set_examples_source_check,
  ADD CONSTRAINT question_set_examples_source_check CHECK (source IN ('added', 'review', 'teacher'));
ALTER TABLE question_set_jobs
  DROP CONSTRAINT question_set_jobs_kind_check,
  ADD CONSTRAINT question_set_jobs_kind_check CHECK (kind IN ('teach', 'check', 'compare', 'next', 'distil'));

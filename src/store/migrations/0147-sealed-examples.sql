-- Texts of examples and cases are encrypted with the keys of content, in Base64; those that are not yet are found by the index.
ALTER TABLE question_set_examples ADD COLUMN sealed boolean NOT NULL DEFAULT false;
CREATE INDEX question_set_examples_plain ON question_set_examples (id) WHERE NOT sealed;
ALTER TABLE question_set_cases ADD COLUMN sealed boolean NOT NULL DEFAULT false;
CREATE INDEX question_set_cases_plain ON question_set_cases (id) WHERE NOT sealed;

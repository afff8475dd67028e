-- Which version of a model a question was taught on: sets of another version than answers today are found by it.
ALTER TABLE question_set_artefacts ADD COLUMN model_version text;
UPDATE question_set_artefacts SET model_version = body::json ->> 'modelVersion';
ALTER TABLE question_set_artefacts ALTER COLUMN model_version SET NOT NULL;

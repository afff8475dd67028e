-- How many lines of an ended batch were not run, beside those that failed: both are in `failed`.
ALTER TABLE batches ADD COLUMN unrun integer NOT NULL DEFAULT 0;

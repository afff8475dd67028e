-- The hash by which examples of question sets are found, of evidence that a set was asked about: equal texts are reviewed once.
-- Gone with the content; null where the evidence is redacted after it is stored.
ALTER TABLE content ADD COLUMN input_hash text COLLATE "C";
CREATE INDEX content_input_hash ON content (organization_id, input_hash) WHERE input_hash IS NOT NULL;

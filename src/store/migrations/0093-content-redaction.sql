-- Content that a question set is to redact waits here, encrypted, until it is redacted; nothing reads it before.
ALTER TABLE content DROP CONSTRAINT content_state_check;
ALTER TABLE content DROP CONSTRAINT content_check;
ALTER TABLE content ADD CONSTRAINT content_state_check CHECK (state IN ('kept', 'redacting', 'deleted', 'expired'));
ALTER TABLE content ADD CONSTRAINT content_check CHECK ((state IN ('kept', 'redacting')) = (sealed IS NOT NULL));
-- The question set; null once it has redacted.
ALTER TABLE content ADD COLUMN redact_with text;
ALTER TABLE content ADD COLUMN redact_attempts integer NOT NULL DEFAULT 0;
-- When it may be tried next: who works on it has moved this ahead.
ALTER TABLE content ADD COLUMN redact_after timestamptz;
CREATE INDEX content_redacting ON content (organization_id, redact_after, seq_id) WHERE state = 'redacting';

-- A deletion by id holds for content that a gateway has not stored yet, as those by time and reference do. Its references are
-- an empty list, so that gateways of the version before do not take it for a deletion by time.
ALTER TABLE content_deletions ADD COLUMN seq_id text COLLATE "C";
CREATE INDEX content_deletions_sequence ON content_deletions (organization_id, seq_id) WHERE seq_id IS NOT NULL;

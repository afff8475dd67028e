-- The headers that a repeated classification is answered with again: who abstained, which set, which region.
ALTER TABLE idempotency_keys ADD COLUMN headers jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(headers) = 'object');

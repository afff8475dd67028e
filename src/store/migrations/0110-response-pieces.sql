-- How the deltas of a stored response were cut: a list of lengths for each output item, as JSON text, so that its stream can be
-- sent again event by event. Null for responses that were stored before.
ALTER TABLE stored_responses ADD COLUMN pieces text;

-- How a webhook's body is written: as Umpire's own event, or as a message that a chat shows.
ALTER TABLE webhooks ADD COLUMN format text NOT NULL DEFAULT 'umpire' CHECK (format IN ('umpire', 'slack', 'teams'));

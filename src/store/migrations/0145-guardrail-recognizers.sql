-- What a guardrail finds by form and check digits, besides what its question set answers.

ALTER TABLE guardrails
  ADD COLUMN recognizers text[] NOT NULL DEFAULT '{}';

-- A tag may have limits a minute besides budgets, or instead of them; null means none.
ALTER TABLE tag_budgets
  ADD COLUMN rate_limit_per_minute integer CHECK (rate_limit_per_minute > 0),
  ADD COLUMN rate_limit_burst integer CHECK (rate_limit_burst > 0),
  ADD COLUMN tokens_per_minute bigint CHECK (tokens_per_minute > 0),
  DROP CONSTRAINT tag_budgets_budgets_check,
  ADD CONSTRAINT tag_budgets_budgets_check CHECK (jsonb_typeof(budgets) = 'array'),
  ADD CHECK ((rate_limit_per_minute IS NULL) = (rate_limit_burst IS NULL)),
  ADD CHECK (budgets <> '[]' OR rate_limit_per_minute IS NOT NULL OR tokens_per_minute IS NOT NULL);

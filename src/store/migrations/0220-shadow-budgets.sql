-- What a shadow may cost in a day (UTC), in USD. Those of before were free: they ask only models without a price until they have a budget.
ALTER TABLE question_sets ADD COLUMN shadow_cost_max_day_usd text NOT NULL DEFAULT '0';

-- Rules that fire when a key has spent what one of its budgets warns of.
ALTER TABLE alert_rules
  DROP CONSTRAINT alert_rules_kind_check,
  ADD CONSTRAINT alert_rules_kind_check CHECK (kind IN ('balance_below', 'spend_above', 'refill_failed', 'error_rate',
    'latency', 'drift', 'low_confidence', 'key_expiring', 'key_budget', 'worker_down'));

-- What an operator did at the command line is told from what the installation did itself.
ALTER TABLE audit_log
  DROP CONSTRAINT audit_log_actor_kind_check,
  ADD CONSTRAINT audit_log_actor_kind_check CHECK (actor_kind IN ('session', 'key', 'workload', 'operator', 'system'));

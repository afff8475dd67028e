-- What cascades sent on, by the day (UTC): counts, never content. Several gateways add to one row.
CREATE TABLE cascade_days (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- The name of the virtual model.
  cascade text COLLATE "C" NOT NULL,
  day date NOT NULL,
  -- From zero; the first one is asked everything.
  stage integer NOT NULL,
  requests bigint NOT NULL,
  questions bigint NOT NULL,
  -- Questions whose answer this stage changed.
  changed bigint NOT NULL,
  -- Questions that stayed as they were, because it failed or a budget was spent.
  unanswered bigint NOT NULL,
  cost_ticks bigint NOT NULL,
  PRIMARY KEY (organization_id, cascade, day, stage)
);
CREATE INDEX cascade_days_day ON cascade_days (day);

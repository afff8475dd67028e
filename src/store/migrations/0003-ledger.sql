-- Money: entries are only ever added, and the balance of an account is their sum, kept also as a column.

CREATE TABLE ledger (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  at timestamptz NOT NULL,
  kind text NOT NULL CHECK (kind IN ('credit', 'purchase', 'usage', 'adjustment')),
  -- 1e-10 USD; positive adds to the balance.
  amount_ticks bigint NOT NULL,
  -- What the entry is for: a sequence, a purchase, or a name such as "starting credit". Counted once per account.
  reference text COLLATE "C" NOT NULL CHECK (reference <> ''),
  note text,
  UNIQUE (billing_account_id, kind, reference)
);
CREATE INDEX ledger_account_time ON ledger (billing_account_id, at);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ledger
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON ledger
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

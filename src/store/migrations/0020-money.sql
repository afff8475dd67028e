-- Money in motion: what gateways hold, what was charged, what was bought and what was invoiced.

-- Usage entries are one per account, organization, UTC day, model and applied batch of the journal.
ALTER TABLE ledger
  DROP CONSTRAINT ledger_kind_check,
  ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('credit', 'purchase', 'usage', 'adjustment', 'payment')),
  ADD COLUMN organization_id text COLLATE "C" REFERENCES organizations,
  ADD COLUMN model text COLLATE "C",
  ADD COLUMN day date,
  ADD COLUMN sequences bigint CHECK (sequences > 0),
  ADD COLUMN input_tokens bigint,
  ADD COLUMN cached_input_tokens bigint,
  ADD COLUMN output_tokens bigint,
  ADD CONSTRAINT ledger_usage CHECK (kind <> 'usage' OR
    (amount_ticks < 0 AND organization_id IS NOT NULL AND model IS NOT NULL AND day IS NOT NULL AND sequences IS NOT NULL));
CREATE INDEX ledger_usage_day ON ledger (billing_account_id, day) WHERE kind = 'usage';

-- Every sequence that was charged, once: what makes applying the journal again harmless, and explains a ledger entry.
-- The one table with a row per request: nothing is checked here that the ledger checks for the batch.
CREATE TABLE charges (
  seq_id text COLLATE "C" PRIMARY KEY,
  billing_account_id text COLLATE "C" NOT NULL,
  amount_ticks bigint NOT NULL CHECK (amount_ticks > 0),
  charged_at timestamptz NOT NULL
);

-- How far the journal of each gateway is in the ledger; moves in the transaction of the entries.
CREATE TABLE journal_positions (
  gateway_id text COLLATE "C" PRIMARY KEY,
  segment bigint NOT NULL,
  position bigint NOT NULL,
  updated_at timestamptz NOT NULL
);

CREATE TABLE month_spend (
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  -- The first day of the calendar month, UTC.
  month date NOT NULL,
  spent_ticks bigint NOT NULL DEFAULT 0,
  -- The latest admission was refused because of the cutoff.
  refused boolean NOT NULL DEFAULT false,
  -- The threshold whose crossing was told; another threshold is another crossing.
  warned_cents bigint,
  PRIMARY KEY (billing_account_id, month)
);

-- What a gateway may still spend, and what it has spent but not yet applied: held, but not in the ledger.
CREATE TABLE leases (
  gateway_id text COLLATE "C" NOT NULL,
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  month date NOT NULL,
  held_ticks bigint NOT NULL CHECK (held_ticks >= 0),
  -- The gateway stops admitting before this; the hold stays until its journal is applied or an operator releases it.
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (billing_account_id, month, gateway_id)
);
CREATE INDEX leases_gateway ON leases (gateway_id);

ALTER TABLE billing_accounts
  ADD COLUMN low_balance_warned boolean NOT NULL DEFAULT false,
  ADD COLUMN provider_error text;

CREATE TABLE purchases (
  id text COLLATE "C" PRIMARY KEY,
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  -- A refill adds credit; an invoice payment settles a postpaid month.
  purpose text NOT NULL CHECK (purpose IN ('refill', 'auto_refill', 'invoice')),
  invoice_id text COLLATE "C",
  amount_cents bigint NOT NULL CHECK (amount_cents > 0),
  status text NOT NULL CHECK (status IN ('processing', 'succeeded', 'failed', 'action_required', 'timed_out')),
  created_by text COLLATE "C" REFERENCES users,
  -- What the provider tells two attempts at one purchase from two purchases by.
  provider_key text COLLATE "C" NOT NULL,
  provider_reference text COLLATE "C",
  error_message text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  -- When the provider is asked again about a purchase that is not decided.
  check_at timestamptz,
  checks integer NOT NULL DEFAULT 0,
  UNIQUE (billing_account_id, provider_key),
  CHECK ((purpose = 'invoice') = (invoice_id IS NOT NULL))
);
CREATE INDEX purchases_account ON purchases (billing_account_id, id);
CREATE INDEX purchases_undecided ON purchases (check_at) WHERE check_at IS NOT NULL;

-- Events of payment providers that were dealt with; they come more than once.
CREATE TABLE payment_events (
  provider text NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  received_at timestamptz NOT NULL,
  PRIMARY KEY (provider, event_id)
);
CREATE INDEX payment_events_time ON payment_events (received_at);

CREATE TABLE invoices (
  id text COLLATE "C" PRIMARY KEY,
  billing_account_id text COLLATE "C" NOT NULL REFERENCES billing_accounts,
  -- From 1, without gaps, per account.
  number integer NOT NULL CHECK (number > 0),
  mode text NOT NULL CHECK (mode IN ('prepaid', 'postpaid')),
  billed_to text NOT NULL,
  period_start date NOT NULL,
  period_end date NOT NULL,
  -- The ledger as far as it was when the invoice was made: what is entered later for this month is on the next one.
  through_ledger_id bigint NOT NULL,
  usage_ticks bigint NOT NULL,
  -- Payments and credits of the period, adjustments included.
  credit_ticks bigint NOT NULL,
  -- Parts of a cent that could not be charged with the invoice before, and with this one.
  carried_in_ticks bigint NOT NULL,
  carried_out_ticks bigint NOT NULL,
  due_cents bigint NOT NULL CHECK (due_cents >= 0),
  status text NOT NULL CHECK (status IN ('paid', 'open', 'payment_failed')),
  issued_at timestamptz NOT NULL,
  paid_at timestamptz,
  UNIQUE (billing_account_id, number),
  UNIQUE (billing_account_id, period_start)
);
CREATE TABLE invoice_lines (
  invoice_id text COLLATE "C" NOT NULL REFERENCES invoices,
  position integer NOT NULL,
  model text COLLATE "C" NOT NULL,
  sequences bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  amount_ticks bigint NOT NULL,
  PRIMARY KEY (invoice_id, position)
);

-- The last month that is done with, whether it had an invoice or not.
CREATE TABLE invoiced_months (
  billing_account_id text COLLATE "C" PRIMARY KEY REFERENCES billing_accounts,
  month date NOT NULL
);

-- Work that is done once across gateways: whoever moves the row does it.
CREATE TABLE periodic_tasks (
  name text PRIMARY KEY,
  due_at timestamptz NOT NULL,
  -- A holder that died is replaced after this.
  held_until timestamptz
);

-- Gateways hear on this channel that credit is wanted elsewhere, or has come back: "recall:account", "returned:account".

-- What an entry was made under: prepaid ones move the balance, postpaid ones are for the month's invoice. Usage is entered
-- under what it was admitted under, whatever the account is by then.
ALTER TABLE ledger ADD COLUMN mode text NOT NULL DEFAULT 'prepaid' CHECK (mode IN ('prepaid', 'postpaid'));
UPDATE ledger l SET mode = CASE kind WHEN 'purchase' THEN 'prepaid' WHEN 'payment' THEN 'postpaid' ELSE b.mode END
  FROM billing_accounts b WHERE b.id = l.billing_account_id AND (b.mode = 'postpaid' OR l.kind = 'payment');
UPDATE billing_accounts b SET balance_ticks =
  (SELECT coalesce(sum(amount_ticks), 0) FROM ledger l WHERE l.billing_account_id = b.id AND l.mode = 'prepaid');

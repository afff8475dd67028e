-- The warnings of spend controls become alert rules of every organization that the account pays for; what was told before
-- is not told again. The columns low_balance_warned and warned_cents are no longer used; gateways of the version before,
-- which may still run, read them.
INSERT INTO alert_rules (id, organization_id, name, kind, threshold, target, channels, enabled, managed_by, state,
  state_since, created_at, updated_at)
SELECT 'ar_0000000000' || substr(md5(o.id || w.kind), 1, 16), o.id, w.name, w.kind, w.cents, '{}', '[]', true,
  'spend_controls', CASE WHEN w.warned THEN 'firing' ELSE 'unknown' END, b.updated_at, b.updated_at, b.updated_at
FROM organizations o
JOIN billing_accounts b ON b.id = o.billing_account_id
LEFT JOIN month_spend m ON m.billing_account_id = b.id AND m.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
CROSS JOIN LATERAL (VALUES
  ('balance_below', 'Low balance', b.low_balance_warning_cents, b.low_balance_warned),
  ('spend_above', 'Spend of the month', b.spend_warning_cents, coalesce(m.warned_cents = b.spend_warning_cents, false))
) AS w (kind, name, cents, warned)
WHERE o.deleted_at IS NULL AND w.cents IS NOT NULL;

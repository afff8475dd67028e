-- Who buys, as invoices and receipts name them; lines of the address are apart by newlines.
ALTER TABLE billing_accounts
  ADD COLUMN buyer_name text,
  ADD COLUMN buyer_address text,
  ADD COLUMN buyer_tax_number text;

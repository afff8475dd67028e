-- Usage of a virtual model is entered under the models of its stages; the request counts with the one that answered, and not with others.
ALTER TABLE ledger
  DROP CONSTRAINT ledger_sequences_check,
  ADD CONSTRAINT ledger_sequences_check CHECK (sequences >= 0);

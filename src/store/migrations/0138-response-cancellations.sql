-- What one organization asks for does not stand in another's way, and what nobody waits for is found by its age.
TRUNCATE response_cancellations;
ALTER TABLE response_cancellations
  DROP CONSTRAINT response_cancellations_pkey,
  ADD PRIMARY KEY (response_id, organization_id);
CREATE INDEX response_cancellations_age ON response_cancellations (requested_at);

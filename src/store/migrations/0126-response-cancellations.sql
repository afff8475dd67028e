-- Responses that a gateway was asked to cancel and that another one may be writing. That one answers with the response as it
-- was then; a row lives for seconds.
CREATE UNLOGGED TABLE response_cancellations (
  response_id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  requested_at timestamptz NOT NULL,
  -- JSON text of the response, once it is cancelled.
  body text
);

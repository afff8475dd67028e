-- Stored responses of the Responses API. JSON is kept as text: it comes back to the byte, and may hold what jsonb refuses.

CREATE TABLE stored_responses (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  previous_id text COLLATE "C",
  -- The response object as it was answered.
  body text NOT NULL,
  -- The items it was asked, without those of the responses before it.
  input text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX stored_responses_age ON stored_responses (organization_id, created_at);

-- Items can be named by later requests.
CREATE TABLE stored_response_items (
  id text COLLATE "C" PRIMARY KEY,
  response_id text COLLATE "C" NOT NULL REFERENCES stored_responses ON DELETE CASCADE,
  organization_id text COLLATE "C" NOT NULL,
  item text NOT NULL
);
CREATE INDEX stored_response_items_response ON stored_response_items (response_id);

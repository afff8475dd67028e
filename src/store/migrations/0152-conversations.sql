-- Conversations: items that responses continue and add to. Metadata and items are encrypted JSON.
CREATE TABLE conversations (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  metadata text NOT NULL,
  created_at timestamptz NOT NULL,
  -- It is kept as long after this as stored responses are.
  used_at timestamptz NOT NULL
);
CREATE INDEX conversations_age ON conversations (organization_id, used_at);

CREATE TABLE conversation_items (
  conversation_id text COLLATE "C" NOT NULL REFERENCES conversations ON DELETE CASCADE,
  position integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  item text NOT NULL,
  PRIMARY KEY (conversation_id, position)
);

-- WebAuthn credentials: the public key is a SubjectPublicKeyInfo, so that nothing of it is secret.
CREATE TABLE passkeys (
  id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  credential_id text COLLATE "C" NOT NULL UNIQUE,
  public_key bytea NOT NULL,
  -- What the authenticator counted at its last signature; 0 where it does not count.
  sign_count bigint NOT NULL,
  name text NOT NULL CHECK (name <> ''),
  created_at timestamptz NOT NULL,
  last_used_at timestamptz
);
CREATE INDEX passkeys_user ON passkeys (user_id, id);

-- Each is answered once, within minutes.
CREATE TABLE passkey_challenges (
  challenge_hash bytea PRIMARY KEY CHECK (octet_length(challenge_hash) = 32),
  -- Who adds a passkey; null where somebody signs in.
  user_id text COLLATE "C" REFERENCES users,
  expires_at timestamptz NOT NULL
);
CREATE INDEX passkey_challenges_expires ON passkey_challenges (expires_at);

ALTER TABLE sessions DROP CONSTRAINT sessions_method_check,
  ADD CONSTRAINT sessions_method_check CHECK (method IN ('password', 'link', 'invitation', 'sso', 'passkey'));

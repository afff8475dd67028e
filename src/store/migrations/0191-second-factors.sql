-- A link that was mailed to somebody who forgot the password sets a new one; it does not sign in by itself.
ALTER TABLE one_time_links ADD COLUMN purpose text NOT NULL DEFAULT 'sign_in' CHECK (purpose IN ('sign_in', 'reset'));

-- Time-based codes (RFC 6238). The secret is encrypted with the keys of content.
CREATE TABLE second_factors (
  user_id text COLLATE "C" PRIMARY KEY REFERENCES users,
  secret text NOT NULL,
  -- Null until the first code was right: signing in does not ask for it before.
  confirmed_at timestamptz,
  -- The time step of the last code that was taken: no code is taken twice.
  last_step bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL
);

CREATE TABLE recovery_codes (
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  code_hash bytea NOT NULL CHECK (octet_length(code_hash) = 32),
  used_at timestamptz,
  PRIMARY KEY (user_id, code_hash)
);

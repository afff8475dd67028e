-- Users as a single sign-on provider knows them: bound on the first sign-in, whatever becomes of the email address.

CREATE TABLE sso_identities (
  issuer text COLLATE "C" NOT NULL CHECK (issuer <> ''),
  subject text COLLATE "C" NOT NULL CHECK (subject <> ''),
  user_id text COLLATE "C" NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX sso_identities_user ON sso_identities (user_id);

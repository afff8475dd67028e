-- Uploaded files and the results of batches. Their bytes lie in a storage, named by their SHA-256 within an organization.

CREATE TABLE file_blobs (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- Which storage has them: gateways that share no folder have one each.
  storage text COLLATE "C" NOT NULL,
  -- In hexadecimal.
  sha256 text COLLATE "C" NOT NULL,
  bytes bigint NOT NULL CHECK (bytes >= 0),
  -- Until something names them; null once it did.
  kept_until timestamptz,
  PRIMARY KEY (organization_id, storage, sha256)
);

CREATE TABLE files (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  storage text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  bytes bigint NOT NULL,
  filename text NOT NULL,
  purpose text NOT NULL CHECK (purpose IN ('batch', 'user_data', 'batch_output')),
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  FOREIGN KEY (organization_id, storage, sha256) REFERENCES file_blobs
);
CREATE INDEX files_organization ON files (organization_id, id);
CREATE INDEX files_expiry ON files (expires_at);
CREATE INDEX files_blob ON files (organization_id, storage, sha256);

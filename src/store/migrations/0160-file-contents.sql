-- The bytes of files where gateways share a PostgreSQL and neither a folder nor S3: pieces that a row of contents holds together.

CREATE TABLE file_contents (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Null, as the checksum, while it is being uploaded.
  organization_id text COLLATE "C" REFERENCES organizations,
  sha256 text COLLATE "C",
  staged_at timestamptz NOT NULL,
  CHECK ((organization_id IS NULL) = (sha256 IS NULL)),
  UNIQUE (organization_id, sha256)
);

CREATE TABLE file_pieces (
  content_id bigint NOT NULL REFERENCES file_contents ON DELETE CASCADE,
  number integer NOT NULL CHECK (number >= 0),
  bytes bytea NOT NULL,
  PRIMARY KEY (content_id, number)
);
-- What people upload is mostly compressed already, and ranges are read.
ALTER TABLE file_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

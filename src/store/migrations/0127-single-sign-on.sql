-- Who becomes a member by single sign-on, and whether sessions must have begun with it.
ALTER TABLE organizations
  ADD COLUMN sso_email_domains text[] NOT NULL DEFAULT '{}',
  ADD COLUMN sso_groups text[] NOT NULL DEFAULT '{}',
  ADD COLUMN sso_role text NOT NULL DEFAULT 'member' CHECK (sso_role IN ('owner', 'member')),
  ADD COLUMN sso_required boolean NOT NULL DEFAULT false;

-- How it began; null for sessions of earlier versions.
ALTER TABLE sessions ADD COLUMN method text CHECK (method IN ('password', 'link', 'invitation', 'sso'));

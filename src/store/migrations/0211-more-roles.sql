-- Those who only label, and those who only pay.
ALTER TABLE memberships DROP CONSTRAINT memberships_role_check,
  ADD CONSTRAINT memberships_role_check CHECK (role IN ('primary_owner', 'owner', 'billing', 'member', 'reviewer'));
ALTER TABLE invitations DROP CONSTRAINT invitations_role_check,
  ADD CONSTRAINT invitations_role_check CHECK (role IN ('primary_owner', 'owner', 'billing', 'member', 'reviewer'));

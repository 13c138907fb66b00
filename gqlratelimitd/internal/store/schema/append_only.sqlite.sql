-- What was written once stays.
CREATE TRIGGER policy_revision_update BEFORE UPDATE ON policy_revision BEGIN SELECT RAISE(ABORT, 'policy_revision is append-only'); END;
CREATE TRIGGER policy_revision_delete BEFORE DELETE ON policy_revision BEGIN SELECT RAISE(ABORT, 'policy_revision is append-only'); END;
CREATE TRIGGER audit_entry_update BEFORE UPDATE ON audit_entry BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END;
CREATE TRIGGER audit_entry_delete BEFORE DELETE ON audit_entry BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END;

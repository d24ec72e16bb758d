DELETE FROM entitlements WHERE granted_until IS NULL;
ALTER TABLE entitlements DROP COLUMN seats;
ALTER TABLE entitlements DROP COLUMN renews;
ALTER TABLE entitlements DROP COLUMN sold_until;
ALTER TABLE entitlements ALTER COLUMN granted_until SET NOT NULL;
ALTER TABLE entitlements RENAME COLUMN granted_until TO pro_until;
COMMENT ON TABLE entitlements IS 'Pro as a fact, whoever sold it: an account has Pro before pro_until (business time).';
DROP TABLE pro_invoices;
DROP TABLE pro_subscriptions;

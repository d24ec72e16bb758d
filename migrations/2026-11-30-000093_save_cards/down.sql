DROP TRIGGER ledger_accounts_mark_low ON ledger_accounts;
DROP FUNCTION automatic_top_ups_mark_low();
DROP TABLE automatic_top_ups;
DROP INDEX top_ups_automatic;
DROP INDEX top_ups_one_automatic;
ALTER TABLE top_ups
    DROP CONSTRAINT top_ups_automatic_customer,
    DROP CONSTRAINT top_ups_paid_method,
    DROP CONSTRAINT top_ups_means_known;
-- Of those times nobody knows how else it was paid.
UPDATE top_ups SET means = 'payment_method' WHERE means = 'automatic';
ALTER TABLE top_ups
    ADD CONSTRAINT top_ups_paid_method CHECK ((means = 'payment_method') = (payment_method IS NOT NULL)),
    ADD CONSTRAINT top_ups_means_known CHECK (means IN ('client', 'payment_method', 'checkout')),
    DROP COLUMN card_last4,
    DROP COLUMN card_brand,
    DROP COLUMN customer_id;
DROP TABLE card_setups;
DROP TABLE payment_methods;

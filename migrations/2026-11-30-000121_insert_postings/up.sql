-- Postings of many transfers in one round trip. Row by row, since one statement posts to a ledger account once; the triggers of `create_ledger` see
-- each as they see any other.
CREATE FUNCTION postings_insert(transfers uuid[], ledger_accounts uuid[], amounts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR place IN 1 .. cardinality(transfers) LOOP
        INSERT INTO postings (transfer_id, ledger_account_id, amount_micros)
            VALUES (transfers[place], ledger_accounts[place], amounts[place]);
    END LOOP;
END $$;

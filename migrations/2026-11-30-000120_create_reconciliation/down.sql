DROP FUNCTION id_text(text, uuid);
DROP TABLE reconciliation_findings;
DROP TABLE reconciliations;
DROP TABLE stripe_balance_transactions;

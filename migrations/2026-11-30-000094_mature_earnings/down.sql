DROP INDEX ledger_accounts_earnings;
DROP TABLE earnings_maturity;

DROP TABLE account_freezes;
DROP TABLE disputes;

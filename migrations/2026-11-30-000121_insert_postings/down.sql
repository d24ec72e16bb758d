DROP FUNCTION postings_insert(uuid[], uuid[], bigint[]);

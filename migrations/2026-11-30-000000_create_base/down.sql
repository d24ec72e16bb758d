DROP TABLE jobs;
DROP TABLE business_clock;
DROP EXTENSION btree_gist;

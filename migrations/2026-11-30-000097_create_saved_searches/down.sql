DROP TABLE saved_search_hits;
DROP TABLE saved_searches;

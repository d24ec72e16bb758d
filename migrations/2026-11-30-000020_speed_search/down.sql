DROP FUNCTION listing_answers_refresh;
DROP TABLE listing_answers;
DROP STATISTICS listings_country;

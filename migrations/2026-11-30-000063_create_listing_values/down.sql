DROP FUNCTION listing_values_refresh;
DROP TABLE listing_values;

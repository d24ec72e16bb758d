DROP TABLE rental_events;
DROP TABLE rental_segments;
DROP TABLE rentals;

DROP TABLE stripe_events;
DROP TABLE top_ups;

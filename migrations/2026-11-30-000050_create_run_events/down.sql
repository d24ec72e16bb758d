DROP TABLE run_events;
DROP FUNCTION run_events_refuse_change();

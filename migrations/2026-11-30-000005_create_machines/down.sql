DROP TABLE machine_watches;
DROP TABLE machines;

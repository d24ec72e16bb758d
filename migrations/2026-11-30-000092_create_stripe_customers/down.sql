DROP TABLE stripe_customers;

DROP TABLE session_cookies;

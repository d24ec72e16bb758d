//! What every test needs: servers, databases, HTTP clients.

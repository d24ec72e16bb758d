//! Machines: registering, changing, deleting, their secrets and their signs of life.

mod api;
mod region;
mod seal;
mod signs;

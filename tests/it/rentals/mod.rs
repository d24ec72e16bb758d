//! Rentals over HTTP: accepting, metering, ending, moving the clock; and the pure rules by themselves.

mod clock;
mod crash;
mod ends;
mod extend;
mod races;
mod renting;
mod reserved;
mod rules;
mod silence;
mod starting;
mod statements;
mod together;
mod whole;

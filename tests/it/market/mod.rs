//! The market: the gate, listings and what backs them, quotes, terms, and the search.

mod evidence;
mod gate;
mod listings;
mod load;
mod price;
mod quotes;
mod search;
mod terms;

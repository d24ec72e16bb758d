//! The market: the gate, listings and what backs them, quotes, terms, and the search.

mod evidence;
mod gate;
mod kept;
mod listings;
mod load;
mod order;
mod price;
mod quotes;
mod saved_searches;
mod search;
mod terms;

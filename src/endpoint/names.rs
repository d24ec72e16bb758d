//! How renters name models: the engine's own name where it is unique among the machines they reach, else `@host/machine/model`.

/// A model on a machine within reach, under both its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The name the engine serves it under.
    pub served: String,
    /// `@host/machine/model`, which is always unique.
    pub full: String,
}

impl ModelName {
    pub fn new(host_handle: &str, machine_name: &str, served: &str) -> Self {
        let machine = machine_name.trim().replace(['/', ' '], "-");
        Self { served: served.to_owned(), full: format!("@{host_handle}/{machine}/{served}") }
    }
}

/// What a name means among the models within reach.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    One(usize),
    /// Places of all models with that name.
    Ambiguous(Vec<usize>),
    Unknown,
}

/// Finds the model that `asked` names. A full name wins over a served one.
pub fn choose(models: &[ModelName], asked: &str) -> Choice {
    let places = |matches: &dyn Fn(&ModelName) -> bool| -> Vec<usize> {
        models.iter().enumerate().filter(|(_, m)| matches(m)).map(|(i, _)| i).collect()
    };
    let full = places(&|m| m.full == asked);
    let found = if full.is_empty() { places(&|m| m.served == asked) } else { full };
    match found.as_slice() {
        [] => Choice::Unknown,
        [one] => Choice::One(*one),
        _ => Choice::Ambiguous(found),
    }
}

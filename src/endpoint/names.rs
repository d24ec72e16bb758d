//! How renters name models: the engine's own name where it is unique among the machines they reach, else `@host/machine/model`.

/// A model on a machine within reach, under all its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The name the engine serves it under.
    pub served: String,
    /// `@host/machine/model`, unique unless a host gave two machines one name.
    pub full: String,
    /// `@host/mch_…/model`, which is always unique.
    pub by_id: String,
}

impl ModelName {
    pub fn new(host_handle: &str, machine_name: &str, machine_id: &str, served: &str) -> Self {
        let machine = machine_name.trim().replace(|c: char| c == '/' || c.is_whitespace(), "-");
        Self {
            served: served.to_owned(),
            full: format!("@{host_handle}/{machine}/{served}"),
            by_id: format!("@{host_handle}/{machine_id}/{served}"),
        }
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
    let places = |name: fn(&ModelName) -> &str| -> Vec<usize> {
        models.iter().enumerate().filter(|(_, m)| name(m) == asked).map(|(i, _)| i).collect()
    };
    let names: [fn(&ModelName) -> &str; 3] = [|m| &m.by_id, |m| &m.full, |m| &m.served];
    let found = names.into_iter().map(places).find(|found| !found.is_empty()).unwrap_or_default();
    match found.as_slice() {
        [] => Choice::Unknown,
        [one] => Choice::One(*one),
        _ => Choice::Ambiguous(found),
    }
}

/// The full name under which the model at `place` can be asked for.
pub fn full_name(models: &[ModelName], place: usize) -> Option<&str> {
    let model = models.get(place)?;
    let is_unique = models.iter().filter(|other| other.full == model.full).count() == 1;
    Some(if is_unique { &model.full } else { &model.by_id })
}

/// Every name to list: the served one where it means one model, then the full one. With the place of its model.
pub fn listed(models: &[ModelName]) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    for (place, model) in models.iter().enumerate() {
        if choose(models, &model.served) == Choice::One(place) {
            all.push((place, model.served.as_str()));
        }
        all.extend(full_name(models, place).map(|name| (place, name)));
    }
    all
}

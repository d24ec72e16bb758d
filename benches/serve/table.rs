//! The table of results.

use std::fmt;

#[derive(Debug, Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

pub struct Row {
    what: String,
    peer: &'static str,
    ours: String,
    theirs: String,
    ratios: Vec<f64>,
    goal: Goal,
}

impl Row {
    /// Rounds of (ours, peer's) in times a second.
    pub fn of_rates(what: &str, peer: &'static str, rounds: &[(f64, f64)], goal: Goal) -> Self {
        Self::new(what, peer, rounds, goal, "/s")
    }
    /// Rounds of (ours, peer's) in milliseconds.
    pub fn of_times(what: &str, peer: &'static str, rounds: &[(f64, f64)], goal: Goal) -> Self {
        Self::new(what, peer, rounds, goal, " ms")
    }
    /// Rounds of (ours, the limit) in MiB.
    pub fn of_sizes(what: &str, rounds: &[(f64, f64)], goal: Goal) -> Self {
        Self::new(what, "limit", rounds, goal, " MiB")
    }

    fn new(what: &str, peer: &'static str, rounds: &[(f64, f64)], goal: Goal, unit: &str) -> Self {
        let middle = |side: fn(&(f64, f64)) -> f64| format!("{}{unit}", short(median(rounds.iter().map(side).collect())));
        Self {
            what: what.to_owned(),
            peer,
            ours: middle(|round| round.0),
            theirs: middle(|round| round.1),
            ratios: rounds.iter().map(|(ours, peer)| ours / peer).collect(),
            goal,
        }
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Table {
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        writeln!(f, "{:wide$}  {:>12}  {:>12}  {:<12}  {:>6}  {:<13}  {:<7}", "what", "ours", "peer's", "peer", "ratio", "spread", "goal")?;
        for row in &self.rows {
            let ratio = median(row.ratios.clone());
            let (low, high) = row.ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), r| (low.min(*r), high.max(*r)));
            let (goal, is_met) = match row.goal {
                Goal::AtLeast(goal) => (format!("≥ {goal}"), ratio >= goal),
                Goal::AtMost(goal) => (format!("≤ {goal}"), ratio <= goal),
            };
            let spread = format!("{low:.2} – {high:.2}");
            let verdict = if is_met { "met" } else { "MISSED" };
            writeln!(
                f,
                "{:wide$}  {:>12}  {:>12}  {:<12}  {ratio:>6.2}  {spread:<13}  {goal:<7}  {verdict}",
                row.what, row.ours, row.theirs, row.peer
            )?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

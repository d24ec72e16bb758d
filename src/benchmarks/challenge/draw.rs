//! Drawing a challenge: a realistic matrix with coordinates that no document made before can have.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::ChallengeSpec;
use crate::benchmarks::log::printed;

/// Prompts come out up to this much longer than their context (evidence.md 1.6).
const PROMPT_SHARE_PERCENT: u64 = 114;
const CONTEXT_MIN: u64 = 64;

/// How much work an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// About a minute: for trying things out.
    Sandbox,
    /// A quarter of an hour: what a listing stands on.
    Standard,
}

/// Everything a drawing depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawRequest {
    pub profile: Profile,
    pub model: Option<String>,
    pub quantization: Option<String>,
    /// Limits of the machine's engine, where they are known.
    pub max_model_len: Option<u64>,
    pub max_running_requests: Option<u32>,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// Unpredictable to the host: from the operating system's random numbers.
    pub seed: u64,
}

struct Plan {
    duration_seconds: f64,
    max_tokens: u64,
    fixed_contexts: &'static [u64],
    /// Ranges of the drawn contexts, and the same as per mille of a shorter engine's room.
    drawn_contexts: [((u64, u64), (u64, u64)); 2],
    fixed_levels: &'static [u32],
    drawn_levels: &'static [(u32, u32)],
    prefill_context: u64,
}

const SANDBOX: Plan = Plan {
    duration_seconds: 2.0,
    max_tokens: 2_048,
    fixed_contexts: &[],
    drawn_contexts: [((2_100, 7_900), (100, 400)), ((16_500, 19_900), (550, 950))],
    fixed_levels: &[],
    drawn_levels: &[(9, 12)],
    prefill_context: 8_192,
};
const STANDARD: Plan = Plan {
    duration_seconds: 30.0,
    max_tokens: 2_048,
    fixed_contexts: &[16_384],
    drawn_contexts: [((4_200, 15_300), (100, 400)), ((34_000, 62_000), (550, 950))],
    fixed_levels: &[8, 32],
    drawn_levels: &[(3, 7), (9, 15)],
    prefill_context: 8_192,
};

/// Draws a challenge: the same request gives the same one.
pub fn draw(request: &DrawRequest) -> ChallengeSpec {
    let plan = match request.profile {
        Profile::Sandbox => &SANDBOX,
        Profile::Standard => &STANDARD,
    };
    let max_tokens = request.max_model_len.map_or(plan.max_tokens, |len| plan.max_tokens.min((len / 4).max(1)));
    let room = request.max_model_len.map(|len| len.saturating_sub(max_tokens) * 100 / PROMPT_SHARE_PERCENT);
    let mut dice = Dice(request.seed);
    let contexts = contexts(plan, room, &mut dice);
    let concurrency_levels = levels(plan, request.max_running_requests, &mut dice);
    let prefill_context = room.map_or(plan.prefill_context, |room| plan.prefill_context.min(room)).max(1);
    ChallengeSpec {
        contexts,
        concurrency_levels,
        prefill_contexts: vec![prefill_context],
        duration_seconds: plan.duration_seconds,
        max_tokens,
        model: request.model.clone(),
        quantization: request.quantization.clone(),
        issued_at: request.issued_at,
        expires_at: request.expires_at,
        seed: request.seed,
    }
}

fn contexts(plan: &Plan, room: Option<u64>, dice: &mut Dice) -> Vec<u64> {
    let fits = |context: u64| room.is_none_or(|room| context <= room);
    let mut chosen = BTreeSet::from([0]);
    chosen.extend(plan.fixed_contexts.iter().copied().filter(|context| fits(*context)));
    for ((low, high), (low_share, high_share)) in plan.drawn_contexts {
        let (low, high) = match room {
            Some(room) if room < high => (room * low_share / 1_000, room * high_share / 1_000),
            _ => (low, high),
        };
        let low = low.max(CONTEXT_MIN);
        // The tool's log rounds contexts down to whole Ki: two that print alike could not be told apart in it.
        let taken: BTreeSet<u64> = chosen.iter().map(|context| printed(*context)).collect();
        let mut context = dice.between(low, high.max(low));
        while is_usual_context(context) || taken.contains(&printed(context)) {
            context += 1;
        }
        chosen.insert(context);
    }
    chosen.into_iter().collect()
}

fn levels(plan: &Plan, max_running: Option<u32>, dice: &mut Dice) -> Vec<u32> {
    let fits = |level: u32| max_running.is_none_or(|max| level <= max);
    let mut chosen = BTreeSet::from([1]);
    chosen.extend(plan.fixed_levels.iter().copied().filter(|level| fits(*level)));
    for (low, high) in plan.drawn_levels {
        let high = max_running.map_or(*high, |max| max.min(*high)).max(1);
        let level = u32::try_from(dice.between(u64::from((*low).min(high)), u64::from(high))).unwrap_or(1);
        chosen.insert(level);
    }
    chosen.into_iter().collect()
}

/// On the grid of habit: whole Ki or whole thousands.
pub fn is_usual_context(context: u64) -> bool {
    context.is_multiple_of(1_024) || context.is_multiple_of(1_000)
}

/// A power of two.
pub fn is_usual_concurrency(concurrency: u32) -> bool {
    concurrency.is_power_of_two()
}

/// SplitMix64: a stored seed draws the same on every version of every library.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

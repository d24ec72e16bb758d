//! vLLM's books without vLLM: who waits, who runs, what is in the KV cache. No clock and no thread here: [`Scheduler::plan`] says how long
//! the next step takes, [`Scheduler::complete`] hands out what it made.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::metrics::Totals;
use super::request::Job;
use super::{BLOCK_TOKENS, SimulatedConfig};

/// Time of a step that may go to reading prompts: what keeps tokens of others, and the news that a client left, from waiting long.
const READ_BUDGET: Duration = Duration::from_millis(100);

/// What one request learns of its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The prompt was admitted; so many of its tokens were in the prefix cache.
    Admitted { cached_tokens: u64 },
    /// The next token.
    Token,
    /// Nothing more comes.
    End,
}

struct Sequence {
    job: Job,
    events: UnboundedSender<Event>,
    /// Prompt tokens (after a preemption also own tokens) that are in the cache.
    read: u64,
    to_read: u64,
    generated: u64,
}

impl Sequence {
    fn held_tokens(&self) -> u64 {
        self.job.prompt_tokens + self.generated
    }
    fn is_reading(&self) -> bool {
        self.read < self.to_read
    }
}

pub struct Scheduler {
    config: Arc<SimulatedConfig>,
    totals: Arc<Totals>,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    cache: PrefixCache,
    /// How far the prompts will have been read when the planned step is complete, by place in `running`.
    reading: Vec<(usize, u64)>,
}

impl Scheduler {
    pub fn new(config: Arc<SimulatedConfig>, totals: Arc<Totals>) -> Self {
        let cache = PrefixCache::new(config.kv_tokens / BLOCK_TOKENS);
        Self { config, totals, waiting: VecDeque::new(), running: Vec::new(), cache, reading: Vec::new() }
    }

    pub fn submit(&mut self, job: Job, events: UnboundedSender<Event>) {
        let to_read = job.prompt_tokens;
        self.waiting.push_back(Sequence { job, events, read: 0, to_read, generated: 0 });
        self.publish();
    }

    /// Forgets clients that left, admits who fits, and returns the time of the next step; `None` when there is nothing to do.
    pub fn plan(&mut self) -> Option<Duration> {
        self.running.retain(|s| !s.events.is_closed());
        self.waiting.retain(|s| !s.events.is_closed());
        self.preempt();
        self.admit();
        self.publish();
        if self.running.is_empty() {
            return None;
        }
        let (mut decoding, mut context) = (0_u32, 0_u64);
        for sequence in self.running.iter().filter(|s| !s.is_reading()) {
            decoding += 1;
            context += sequence.held_tokens();
        }
        let mean = if decoding == 0 { 0.0 } else { context as f64 / f64::from(decoding) };
        let read_time = self.plan_reading();
        Some(self.config.law.decode_step(decoding, mean) + read_time)
    }

    /// Prompts are read one after another, in the order they came.
    fn plan_reading(&mut self) -> Duration {
        self.reading.clear();
        let mut spent = Duration::ZERO;
        for (place, sequence) in self.running.iter().enumerate().filter(|(_, s)| s.is_reading()) {
            let Some(left) = READ_BUDGET.checked_sub(spent).filter(|left| !left.is_zero()) else { break };
            let to = sequence.to_read.min(sequence.read + self.config.law.readable(sequence.read, left));
            spent += self.config.law.read(sequence.read, to);
            self.reading.push((place, to));
        }
        spent
    }

    /// Hands out one token to every request that decoded or whose prompt ended in this step.
    pub fn complete(&mut self) {
        let mut progress = self.reading.drain(..).peekable();
        for (place, sequence) in self.running.iter_mut().enumerate() {
            if sequence.is_reading() {
                match progress.next_if(|(at, _)| *at == place) {
                    Some((_, to)) => sequence.read = to,
                    None => continue,
                }
                if sequence.is_reading() {
                    continue;
                }
                self.cache.insert(&sequence.job.blocks);
                if sequence.generated == 0 {
                    self.totals.count_prompt(sequence.job.prompt_tokens);
                }
            }
            sequence.generated += 1;
            // Counted first, so that whoever has the token sees it counted.
            self.totals.count_generated(1);
            // A failed send is a client that left; the next plan forgets it.
            let _left = sequence.events.send(Event::Token);
            if sequence.generated >= sequence.job.answer_tokens {
                let _left = sequence.events.send(Event::End);
            }
        }
        drop(progress);
        let totals = self.totals.clone();
        self.running.retain(|s| {
            let ended = s.generated >= s.job.answer_tokens;
            if ended {
                totals.count_finished(s.job.ends_by_itself);
            }
            !ended
        });
        self.publish();
    }

    fn held_tokens(&self) -> u64 {
        self.running.iter().map(Sequence::held_tokens).sum()
    }

    /// Sends the newest request back to the queue while the next step's tokens do not fit.
    fn preempt(&mut self) {
        while self.running.len() > 1 && self.held_tokens() + self.running.len() as u64 > self.config.kv_tokens {
            let Some(mut sequence) = self.running.pop() else { break };
            sequence.read = 0;
            sequence.to_read = sequence.held_tokens();
            self.totals.count_preemption();
            self.waiting.push_front(sequence);
        }
    }

    fn admit(&mut self) {
        let mut held = self.held_tokens();
        while self.running.len() < self.config.max_running {
            let headroom = BLOCK_TOKENS * (self.running.len() as u64 + 1);
            let Some(next) = self.waiting.front() else { break };
            let alone = self.running.is_empty();
            if !alone && held + next.held_tokens() + headroom > self.config.kv_tokens {
                break;
            }
            let Some(mut next) = self.waiting.pop_front() else { break };
            held += next.held_tokens();
            // The last token is always read: its output is the first token of the answer.
            next.read = self.cache.known_tokens(&next.job.blocks).min(next.to_read.saturating_sub(1));
            if next.generated == 0 {
                self.totals.count_cache(next.job.prompt_tokens, next.read);
                let _left = next.events.send(Event::Admitted { cached_tokens: next.read });
            }
            self.running.push(next);
        }
    }

    fn publish(&self) {
        self.totals.set_load(self.running.len(), self.waiting.len(), self.held_tokens());
    }
}

/// Blocks whose contents were read before, by the hash of the prompt up to their end; the oldest half goes when it is full.
struct PrefixCache {
    blocks: HashMap<u64, u64>,
    uses: u64,
    blocks_max: usize,
}

impl PrefixCache {
    fn new(blocks_max: u64) -> Self {
        Self { blocks: HashMap::new(), uses: 0, blocks_max: usize::try_from(blocks_max).unwrap_or(usize::MAX) }
    }

    fn known_tokens(&self, blocks: &[u64]) -> u64 {
        BLOCK_TOKENS * blocks.iter().take_while(|hash| self.blocks.contains_key(hash)).count() as u64
    }

    fn insert(&mut self, blocks: &[u64]) {
        self.uses += 1;
        self.blocks.extend(blocks.iter().map(|hash| (*hash, self.uses)));
        if self.blocks.len() > self.blocks_max {
            let mut ages: Vec<u64> = self.blocks.values().copied().collect();
            let middle = ages.len() / 2;
            let (_, median, _) = ages.select_nth_unstable(middle);
            let oldest_kept = *median;
            self.blocks.retain(|_, used| *used >= oldest_kept);
        }
    }
}

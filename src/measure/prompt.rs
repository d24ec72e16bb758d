//! The prompts: text whose length in tokens is a straight line in its length in characters, which no engine has seen before.
//!
//! Every line holds the same words in another order. So all lines have the same number of characters, nearly the same number of tokens in any
//! tokenizer, and no two prompts share more than the prefix cache can use only when it is meant to.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::stream::Asker;
use crate::base::Result;

const WORDS: [&str; 24] = [
    "river", "stone", "north", "paper", "cloud", "early", "glass", "seven", "house", "metal", "green", "seldom", "market", "winter",
    "between", "morning", "engine", "across", "number", "letter", "garden", "simple", "window", "carry",
];

const QUESTION: &str = "Write a long, detailed story about a lighthouse keeper who catalogues every ship that passes. Describe the sea, \
the weather, the ships and their cargo, the letters that arrive, and what the keeper thinks about each of them. Do not stop early and do \
not summarise; when one chapter ends, begin the next one at once.";

/// Makes the prompts of one run.
#[derive(Debug, Clone)]
pub struct Prompts {
    run: String,
    /// Characters of context for one token.
    pub chars_per_token: f64,
}

impl Prompts {
    /// `run` is the nonce of this run; every prompt has it at its head, so that no cache of an earlier run helps.
    pub fn new(run: String) -> Self {
        Self { run, chars_per_token: 4.0 }
    }

    /// Twelve random letters.
    pub fn nonce() -> String {
        let mut random = rand::rng();
        (0..12).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect()
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// Characters of a context of so many tokens.
    pub fn chars(&self, context_tokens: u64) -> usize {
        (context_tokens as f64 * self.chars_per_token) as usize
    }

    /// The prompt for a context of `context_tokens` tokens; context 0 is the question alone. Prompts of another purpose or context share
    /// no beginning with it: an engine that has read one has not read a part of the other.
    pub fn text(&self, purpose: &str, context_tokens: u64) -> String {
        if context_tokens == 0 {
            return format!("{QUESTION}\n[{} {purpose}]", self.run);
        }
        format!("{}\n{QUESTION}", self.padding(&format!("{purpose} {context_tokens}"), self.chars(context_tokens)))
    }

    /// Learns how many characters make a token from one prompt with much text and one with none. `None` when the engine reports no prompt
    /// tokens; then the guess of four stands.
    pub async fn calibrate(&mut self, asker: &Asker<'_>, context_tokens: u64) -> Result<Option<f64>> {
        let chars = self.chars(context_tokens);
        let text = format!("{}\n", self.padding("calibration", chars));
        let with = asker.one_token(&text).await?.prompt_tokens;
        let without = asker.one_token("\n").await?.prompt_tokens;
        let tokens = with.zip(without).and_then(|(with, without)| with.checked_sub(without)).filter(|tokens| *tokens > 0);
        let ratio = tokens.map(|tokens| chars as f64 / tokens as f64);
        if let Some(ratio) = ratio {
            // A ratio beyond these is a usage that counts something else.
            self.chars_per_token = ratio.clamp(1.0, 12.0);
        }
        Ok(ratio)
    }

    /// `chars` characters of text, all ASCII.
    pub fn padding(&self, purpose: &str, chars: usize) -> String {
        let mut seed = [0_u8; 32];
        let mut hash = <sha2::Sha256 as sha2::Digest>::new();
        sha2::Digest::update(&mut hash, self.run.as_bytes());
        sha2::Digest::update(&mut hash, [0]);
        sha2::Digest::update(&mut hash, purpose.as_bytes());
        seed.copy_from_slice(&sha2::Digest::finalize(hash));
        let mut random = StdRng::from_seed(seed);
        let mut words = WORDS;
        // The first letters already differ, so that a prefix cache finds the chat template and no more.
        let head: String = (0..8).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
        let mut text = format!("{head} [{} {purpose}] ", self.run);
        while text.len() < chars {
            words.shuffle(&mut random);
            text.push_str(&words.join(" "));
            text.push('\n');
        }
        text.truncate(chars);
        text
    }
}

//! Questions that only who has read the whole prompt can answer: codes strewn over the context, of which a few are asked at its end.
//!
//! One context serves all streams of a cell, as in the benchmark; each stream gets a question of its own. An echo says all codes in the
//! order of the context, an answer of yesterday says none of today's, and who dropped a part of the context lacks those in it: one word of
//! each third is asked, never in the context's order.

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

/// Codes of a context. Three are asked, so that one comes from each third.
const NEEDLES: usize = 15;
const ASKED: usize = 3;
/// Tokens within which the codes have to come; who thinks aloud first gets more.
const ANSWER_TOKENS_MAX: u64 = 64;
const REASONED_TOKENS_MAX: u64 = 384;

/// None of them stands in the padding.
const NEEDLE_WORDS: [&str; 40] = [
    "anchor", "badger", "candle", "dragon", "ember", "falcon", "glacier", "hammer", "island", "jacket", "kettle", "ladder", "magnet",
    "needle", "orchard", "pepper", "quarry", "ribbon", "saddle", "timber", "umbrella", "velvet", "walnut", "yonder", "zipper", "basket",
    "copper", "dolphin", "feather", "granite", "harbor", "ivory", "jungle", "lantern", "marble", "nectar", "oyster", "pillow", "rocket",
    "spider",
];

const PEOPLE: [&str; 12] = [
    "lighthouse keeper",
    "clockmaker",
    "ferryman",
    "beekeeper",
    "cartographer",
    "glassblower",
    "postmaster",
    "gardener",
    "stationmaster",
    "bookbinder",
    "innkeeper",
    "shepherd",
];
const PLACES: [&str; 12] = [
    "on a rocky coast",
    "in a mountain village",
    "beside a wide river",
    "at the edge of a desert",
    "in an old port",
    "on a small island",
    "near a deep forest",
    "in a walled town",
    "above a quiet bay",
    "along a railway",
    "between two lakes",
    "under a great bridge",
];

/// A word and its code of four digits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needle {
    word: &'static str,
    code: String,
}

/// The codes of one context, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needles(Vec<Needle>);

/// A question for three of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// To be put after the context.
    pub text: String,
    /// The codes in the order asked.
    asked: Vec<String>,
    others: Vec<String>,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Right,
    Wrong,
    /// The stream was cut off before an answer could be expected.
    Unfinished,
}

impl Needles {
    pub fn draw(random: &mut impl Rng) -> Self {
        let mut words = NEEDLE_WORDS;
        words.shuffle(random);
        let mut codes: Vec<u32> = Vec::with_capacity(NEEDLES);
        while codes.len() < NEEDLES {
            let code = random.random_range(1_000..10_000);
            // A year is what any text may hold by itself.
            if !codes.contains(&code) && !(1_800..2_100).contains(&code) {
                codes.push(code);
            }
        }
        Self(words.into_iter().zip(codes).map(|(word, code)| Needle { word, code: code.to_string() }).collect())
    }

    /// About how many characters the codes take of a context.
    pub fn chars(&self) -> usize {
        self.0.iter().map(|needle| line(needle).len()).sum()
    }

    /// The context: the lines of `padding` with the codes strewn evenly over them.
    pub fn context(&self, padding: &str) -> String {
        let lines: Vec<&str> = padding.lines().collect();
        let mut text = String::with_capacity(padding.len() + self.chars());
        let mut needles = self.0.iter().enumerate().peekable();
        for (at, padded) in lines.iter().enumerate() {
            while let Some((_, needle)) = needles.next_if(|(number, _)| (number * 2 + 1) * lines.len() <= at * 2 * self.0.len()) {
                text.push_str(&line(needle));
            }
            text.push_str(padded);
            text.push('\n');
        }
        needles.for_each(|(_, needle)| text.push_str(&line(needle)));
        text
    }

    /// A question of one's own for a stream.
    pub fn ask(&self, random: &mut impl Rng) -> Question {
        let third = self.0.len().div_ceil(ASKED);
        let mut asked: Vec<&Needle> = self.0.chunks(third).filter_map(|part| part.choose(random)).collect();
        let in_order = asked.clone();
        while asked == in_order && asked.len() > 1 {
            asked.shuffle(random);
        }
        let [first, second, third] = [0, 1, 2].map(|at: usize| asked.get(at).map_or("", |needle| needle.word));
        let (person, place) = (PEOPLE.choose(random).unwrap_or(&""), PLACES.choose(random).unwrap_or(&""));
        let text = format!(
            "In the text above some words have a code of four digits. First write nothing but the codes of {first}, {second} and {third}, in \
             this order, separated by spaces. Then go on at once and write a long, detailed story about a {person} {place}. Describe the \
             weather, the visitors, the letters that arrive, and what is thought about each of them. Do not stop early and do not summarise; \
             when one chapter ends, begin the next one at once."
        );
        let codes = |needles: &[&Needle]| needles.iter().map(|needle| needle.code.clone()).collect::<Vec<_>>();
        let others: Vec<&Needle> = self.0.iter().filter(|needle| !asked.contains(needle)).collect();
        Question { text, asked: codes(&asked), others: codes(&others) }
    }
}

fn line(needle: &Needle) -> String {
    format!("The code of {} is {}.\n", needle.word, needle.code)
}

impl Question {
    /// Right when the three codes come in the order asked and before any other code of the context. `tokens` is how many came in all.
    pub fn judge(&self, said: &str, tokens: u64, has_reasoning: bool) -> Answer {
        let mut found: Vec<&str> = Vec::new();
        for number in said.split(|c: char| !c.is_ascii_digit()) {
            let is_code = self.asked.iter().chain(&self.others).any(|code| code == number);
            if is_code && found.last() != Some(&number) {
                found.push(number);
            }
        }
        found.truncate(self.asked.len());
        if self.asked.iter().zip(&found).any(|(asked, found)| asked != found) {
            return Answer::Wrong;
        }
        let tokens_max = if has_reasoning { REASONED_TOKENS_MAX } else { ANSWER_TOKENS_MAX };
        match found.len() == self.asked.len() {
            true => Answer::Right,
            false if tokens >= tokens_max => Answer::Wrong,
            false => Answer::Unfinished,
        }
    }
}

/// Answers such a question as a model that has read the prompt would; `None` for a prompt that asks none. Used by the simulated engine, which
/// knows of a prompt only its text.
pub fn read_and_answer(prompt: &str) -> Option<String> {
    let (context, question) = prompt.rsplit_once("write nothing but the codes of ")?;
    let asked = question.split_once(", in this order")?.0;
    let words = asked.split([',', ' ']).filter(|word| !word.is_empty() && *word != "and");
    let code = |word: &str| {
        let (_, rest) = context.split_once(&format!("The code of {word} is "))?;
        rest.get(..4).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // A model that lacks a code makes one up.
    Some(words.map(|word| code(word).unwrap_or("0000")).collect::<Vec<_>>().join(" "))
}

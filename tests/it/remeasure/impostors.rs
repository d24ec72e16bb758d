//! Engines that are fast enough but no models: each is as quick as its matrix says.

use rigmark::measure::simulated::{self, SimulatedConfig, Wits};

use super::{Stage, config, quick};

async fn outcome(config: SimulatedConfig) -> (String, String) {
    let stage = Stage::with(simulated::start(config, "127.0.0.1:0").unwrap(), quick).await;
    let asked = stage.ask().await;
    let row = stage.measure(&asked).await;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (text(&row["status"]), format!("{} {}", text(&row["detail"]), row["answers"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_is_not_taken_for_a_model() {
    let (status, detail) = outcome(config().with_wits(Wits::Echoes)).await;
    assert!(status == "disagreed" && detail.contains("did not answer") && detail.contains("\"right\":0"), "{status}: {detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_were_ready_are_not_taken_for_a_models() {
    let (status, detail) = outcome(config().with_wits(Wits::Recites)).await;
    assert!(status == "disagreed" && detail.contains("did not answer") && detail.contains("\"right\":0"), "{status}: {detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_drops_the_middle_of_the_prompt_is_found_out() {
    let (status, detail) = outcome(config().with_wits(Wits::Forgets)).await;
    assert!(status == "disagreed" && detail.contains("did not answer") && detail.contains("\"right\":0"), "{status}: {detail}");
}

/// Half the speed and twice the tokens: the figures fit, the text does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_that_the_text_does_not_bear_out_are_a_disagreement() {
    let law = simulated::law::SpeedLaw::at_speed(super::DECODE_TPS / 3.0, super::PREFILL_TPS).unwrap();
    let (status, detail) = outcome(SimulatedConfig { law, ..config() }.with_usage_factor(3)).await;
    assert!(status == "disagreed" && detail.contains("more tokens were counted than came"), "{status}: {detail}");
}

//! `cargo run --example stripe_double`: the Stripe double as a program, for trying Rigmark's payments without Stripe.

mod double;

use clap::Parser;

use double::{HELP, StripeDouble, StripeDoubleConfig};

/// A stand-in for Stripe that runs on this machine.
///
/// Point a client's base address at it, with any key that begins with `sk_`. It answers as API version 2026-09-30.endive does, knows Stripe's
/// test cards by number (4242 4242 4242 4242), payment method (pm_card_visa, pm_card_chargeDeclined, pm_card_authenticationRequired) and token
/// (tok_visa), sends signed webhooks, and forgets everything when it stops.
#[derive(Parser)]
#[command(name = "stripe_double", after_help = after_help())]
struct Args {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:12111")]
    bind: String,
    /// Where webhooks go; without it, events are only kept.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Signs the webhooks: the endpoint's secret.
    #[arg(long, value_name = "whsec_…", default_value = "whsec_double")]
    secret: String,
}

fn after_help() -> String {
    format!("Controls, JSON in and out:\n{HELP}")
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let double = StripeDouble::start(&StripeDoubleConfig { bind: args.bind, webhook_url: args.webhook, secret: args.secret })?;
    println!("Stripe double: {0} (controls: {0}/_double)", double.url());
    double.wait();
    Ok(())
}

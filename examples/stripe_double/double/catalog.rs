//! Products and prices.

use serde_json::{Value, json};

use super::call::Call;
use super::refusal::{Answer, Refusal};
use super::world::World;

const PRODUCT_FIELDS: [&str; 9] =
    ["id", "name", "description", "active", "metadata", "tax_code", "unit_label", "url", "statement_descriptor"];
const PRICE_FIELDS: [&str; 11] = [
    "currency",
    "unit_amount",
    "recurring",
    "product",
    "product_data",
    "nickname",
    "lookup_key",
    "metadata",
    "active",
    "tax_behavior",
    "transfer_lookup_key",
];

pub fn create_product(world: &mut World, call: &Call) -> Answer {
    call.only(&PRODUCT_FIELDS)?;
    call.need("name")?;
    let mut product = world.blank("product", "prod");
    call.copy(&mut product, &["id"]);
    write_product(world, call, product, "product.created")
}

pub fn update_product(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&PRODUCT_FIELDS)?;
    let product = world.get("product", id)?;
    write_product(world, call, product, "product.updated")
}

fn write_product(world: &mut World, call: &Call, mut product: Value, event: &str) -> Answer {
    call.copy(&mut product, &["name", "description", "tax_code", "unit_label", "url", "statement_descriptor"]);
    call.copy_metadata(&mut product);
    if let Some(active) = call.flag("active")? {
        product["active"] = json!(active);
    }
    product["updated"] = json!(world.now());
    world.put(&product);
    world.emit(event, &product);
    Ok(product)
}

pub fn create_price(world: &mut World, call: &Call) -> Answer {
    call.only(&PRICE_FIELDS)?;
    if let Some(key) = call.text("lookup_key") {
        let taken = world.all("price").into_iter().find(|price| price["lookup_key"] == key);
        match (taken, call.flag("transfer_lookup_key")?) {
            (None, _) => {}
            (Some(mut other), Some(true)) => {
                other["lookup_key"] = Value::Null;
                world.put(&other);
            }
            (Some(_), _) => {
                let message = format!("A price already uses the lookup key: `{key}`.");
                return Err(Refusal::invalid(message, Some("lookup_key")));
            }
        }
    }
    let price = make_price(world, call)?;
    world.emit("price.created", &price);
    Ok(price)
}

/// A price from `price` parameters or a session's `price_data`.
pub fn make_price(world: &mut World, call: &Call) -> Answer {
    call.need("currency")?;
    let amount = call.integer("unit_amount")?.ok_or_else(|| Refusal::missing("unit_amount"))?;
    if amount < 0 {
        return Err(Refusal::invalid("Invalid non-negative integer", Some("unit_amount")));
    }
    let product = match call.text("product") {
        Some(product) => world.named("product", product, "product")?,
        None => {
            let mut data = call.below("product_data");
            if let Some(members) = data.params.as_object_mut() {
                members.remove("images");
            }
            data.need("name")?;
            create_product(world, &data)?
        }
    };
    let mut price = world.blank("price", "price");
    price["product"] = product["id"].clone();
    call.copy(&mut price, &["nickname", "lookup_key", "tax_behavior"]);
    price["currency"] = json!(call.need("currency")?.to_lowercase());
    price["unit_amount"] = json!(amount);
    price["unit_amount_decimal"] = json!(amount.to_string());
    call.copy_metadata(&mut price);
    if call.has("recurring") {
        call.need("recurring/interval")?;
        let interval = call.one_of("recurring/interval", &["day", "week", "month", "year"])?;
        let count = call.amount("recurring/interval_count")?.unwrap_or(1);
        price["type"] = json!("recurring");
        price["recurring"] = json!({ "interval": interval, "interval_count": count, "meter": null, "usage_type": "licensed" });
    }
    world.put(&price);
    Ok(price)
}

pub fn update_price(world: &mut World, call: &Call, id: &str) -> Answer {
    call.only(&["active", "metadata", "nickname", "lookup_key", "tax_behavior", "transfer_lookup_key"])?;
    let mut price = world.get("price", id)?;
    call.copy(&mut price, &["nickname", "lookup_key", "tax_behavior"]);
    call.copy_metadata(&mut price);
    if let Some(active) = call.flag("active")? {
        price["active"] = json!(active);
    }
    world.put(&price);
    world.emit("price.updated", &price);
    Ok(price)
}

/// Prices by `lookup_keys[]` too, which are no member of a price.
pub fn list_prices(world: &World, call: &Call) -> Answer {
    call.only(&["active", "currency", "product", "type", "lookup_keys", "limit", "starting_after", "ending_before"])?;
    let keys = call.texts("lookup_keys");
    let mut prices = world.all("price");
    for name in ["currency", "product", "type"] {
        prices.retain(|price| call.text(name).is_none_or(|wanted| price[name] == wanted));
    }
    let active = call.flag("active")?;
    prices.retain(|price| active.is_none_or(|wanted| price["active"] == wanted));
    prices.retain(|price| keys.is_empty() || keys.iter().any(|key| price["lookup_key"] == key.as_str()));
    super::lists::page(call, prices)
}

/// The old form of a price, which subscription items still carry.
pub fn plan(price: &Value) -> Value {
    let mut plan = super::shapes::blank("plan");
    for name in ["id", "active", "created", "currency", "livemode", "metadata", "nickname", "product", "billing_scheme"] {
        plan[name] = price[name].clone();
    }
    plan["amount"] = price["unit_amount"].clone();
    plan["amount_decimal"] = price["unit_amount_decimal"].clone();
    plan["interval"] = price["recurring"]["interval"].clone();
    plan["interval_count"] = price["recurring"]["interval_count"].clone();
    plan
}

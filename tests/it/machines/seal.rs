//! Secrets at rest.

use proptest::prelude::*;
use rigmark::base::seal::PurposeKey;
use rigmark::base::secret::Secret;

fn key(root: &[u8], purpose: &str) -> PurposeKey {
    PurposeKey::derive(&Secret::new(root.to_vec()), purpose).unwrap()
}

proptest! {
    #[test]
    fn what_was_sealed_opens_for_its_owner_only(plain: Vec<u8>, owner: [u8; 16], other: [u8; 16], at: prop::sample::Index, bit in 0..8_u8) {
        let key = key(b"a root key of at least 32 characters", "test v1");
        let sealed = key.seal(&owner, &plain).unwrap();
        prop_assert_eq!(key.open(&owner, &sealed).unwrap(), plain.clone());
        prop_assert_eq!(key.open(&other, &sealed).is_ok(), owner == other);
        let mut changed = sealed.clone();
        changed[at.index(sealed.len())] ^= 1 << bit;
        prop_assert!(key.open(&owner, &changed).is_err());
        prop_assert!(key.open(&owner, &sealed[..sealed.len() - 1]).is_err());
        // A new nonce each time: equal keys of two rows do not look equal.
        prop_assert_ne!(key.seal(&owner, &plain).unwrap(), sealed);
    }
}

#[test]
fn another_purpose_or_root_is_another_key() {
    let sealed = key(b"root one", "engine key").seal(b"row", b"sk-123").unwrap();
    assert!(key(b"root one", "webhook secret").open(b"row", &sealed).is_err());
    assert!(key(b"root two", "engine key").open(b"row", &sealed).is_err());
    let tag = key(b"root one", "engine key").sign(b"text").unwrap();
    assert!(key(b"root one", "engine key").is_signature(b"text", &tag).unwrap());
    assert!(!key(b"root one", "quote").is_signature(b"text", &tag).unwrap());
    assert!(!key(b"root one", "engine key").is_signature(b"text", &tag[..31]).unwrap());
    assert!(key(b"root one", "engine key").open(b"row", &[]).is_err());
}

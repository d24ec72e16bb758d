//! The tables of scopes and roles, cell by cell.

use rigmark::identity::scope::{Role, Scope, ScopeSet};

/// Rows: what is held. Columns, in the order of `Scope::ALL`: account:read, machines:read, machines:write, runs:write, listings:write,
/// rentals:read, rentals:write, billing:read, billing:write, inference.
const HELD_ALLOWS: &[(&str, &str)] = &[
    ("account:read", "x........."),
    ("machines:read", ".x........"),
    ("machines:write", ".xx......."),
    ("runs:write", "...x......"),
    ("listings:write", "....x....."),
    ("rentals:read", ".....x...."),
    ("rentals:write", ".....xx..."),
    ("billing:read", ".......x.."),
    ("billing:write", ".......xx."),
    ("inference", ".........x"),
];

const ROLE_ALLOWS: &[(Role, &str)] =
    &[(Role::Owner, "xxxxxxxxxx"), (Role::Admin, "xxxxxxxxxx"), (Role::Member, "xxxx.xx..x"), (Role::Billing, "xx...x.xx.")];

fn marks(set: ScopeSet) -> String {
    Scope::ALL.iter().map(|scope| if set.allows(*scope) { 'x' } else { '.' }).collect()
}

#[test]
fn each_scope_allows_itself_and_a_write_its_read() {
    assert_eq!(HELD_ALLOWS.len(), Scope::ALL.len());
    for (text, expected) in HELD_ALLOWS {
        let scope = Scope::parse(text).unwrap();
        assert_eq!(scope.as_str(), *text);
        assert_eq!(marks([scope].into_iter().collect()), *expected, "{text}");
    }
    for unknown in ["", "*", "account", "account:write", "Account:read", "machines:read ", "admin"] {
        assert_eq!(Scope::parse(unknown), None, "{unknown}");
    }
}

#[test]
fn each_role_allows_what_the_table_says() {
    assert_eq!(ROLE_ALLOWS.len(), Role::ALL.len());
    for (role, expected) in ROLE_ALLOWS {
        assert_eq!(marks(role.scopes()), *expected, "{role:?}");
    }
}

#[test]
fn an_empty_set_allows_nothing_and_covers_only_itself() {
    assert_eq!(marks(ScopeSet::EMPTY), "..........");
    assert!(ScopeSet::EMPTY.covers(ScopeSet::EMPTY) && ScopeSet::EMPTY.is_empty());
    for scope in Scope::ALL {
        let one: ScopeSet = [*scope].into_iter().collect();
        assert!(!ScopeSet::EMPTY.covers(one) && ScopeSet::all().covers(one) && one.covers(ScopeSet::EMPTY));
        assert!(one.intersection(ScopeSet::EMPTY).is_empty());
    }
}

/// `covers` is exactly "allows at least as much", for every pair of sets.
#[test]
fn covering_is_allowing_at_least_as_much() {
    let set =
        |bits: u16| Scope::ALL.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, scope)| *scope).collect::<ScopeSet>();
    for a in 0..1024_u16 {
        let a = set(a);
        for b in (0..1024_u16).step_by(7) {
            let b = set(b);
            let allows_as_much = Scope::ALL.iter().all(|scope| !b.allows(*scope) || a.allows(*scope));
            assert_eq!(a.covers(b), allows_as_much, "{a:?} {b:?}");
            let both = a.intersection(b);
            assert!(Scope::ALL.iter().all(|scope| both.allows(*scope) == (a.allows(*scope) && b.allows(*scope))), "{a:?} {b:?}");
        }
    }
}

#[test]
fn roles_give_and_take_what_the_table_says() {
    // Rows: who assigns; columns: owner, admin, member, billing.
    let table = [(Role::Owner, "xxxx"), (Role::Admin, ".xxx"), (Role::Member, "...."), (Role::Billing, "....")];
    for (role, expected) in table {
        let found: String = Role::ALL.iter().map(|other| if role.may_assign(*other) { 'x' } else { '.' }).collect();
        assert_eq!(found, expected, "{role:?}");
        assert_eq!(role.manages_members(), matches!(role, Role::Owner | Role::Admin));
        assert_eq!(Role::parse(role.as_str()), Some(role));
    }
    assert_eq!(Role::parse("Owner"), None);
}

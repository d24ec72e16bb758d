//! The simple model of the books that random operations are held against: whole numbers of micro-dollars, and no database.

use rigmark::base::id::{HoldId, TransferId};

/// The fee of what the test rents: a tenth, which is whole since every amount is whole cents.
pub const FEE_DIVISOR: i64 = 10;

#[derive(Debug, Default)]
pub struct Member {
    pub available: i64,
    /// What was earned less what was given back and paid out, payable or not.
    pub earned: i64,
    /// Top-ups that were paid.
    pub top_ups: Vec<String>,
    pub open_disputes: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct Hold {
    pub id: HoldId,
    pub renter: usize,
    pub host: usize,
    pub remaining: i64,
    pub is_open: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Tick {
    pub id: TransferId,
    pub hold: usize,
}

#[derive(Debug, Clone)]
pub struct Dispute {
    pub id: String,
    pub member: usize,
    pub amount: i64,
}

#[derive(Debug, Default)]
pub struct Model {
    pub members: Vec<Member>,
    pub holds: Vec<Hold>,
    pub ticks: Vec<Tick>,
    /// Charged less given back, by hold.
    pub charged: Vec<i64>,
    pub disputes: Vec<Dispute>,
    pub fees: i64,
    /// Stripe has it for us.
    pub at_stripe: i64,
    pub minted: i64,
}

impl Model {
    pub fn of(members: usize) -> Self {
        Self { members: (0..members).map(|_| Member::default()).collect(), ..Self::default() }
    }

    pub fn credited(&mut self, member: usize, amount: i64) {
        self.members[member].available += amount;
        self.minted += amount;
    }

    pub fn held(&mut self, id: HoldId, renter: usize, host: usize, amount: i64) {
        self.members[renter].available -= amount;
        self.holds.push(Hold { id, renter, host, remaining: amount, is_open: true });
        self.charged.push(0);
    }

    pub fn increased(&mut self, hold: usize, amount: i64) {
        self.members[self.holds[hold].renter].available -= amount;
        self.holds[hold].remaining += amount;
    }

    pub fn ticked(&mut self, id: TransferId, hold: usize, gross: i64) {
        self.holds[hold].remaining -= gross;
        self.charged[hold] += gross;
        self.members[self.holds[hold].host].earned += gross - gross / FEE_DIVISOR;
        self.fees += gross / FEE_DIVISOR;
        self.ticks.push(Tick { id, hold });
    }

    pub fn released(&mut self, hold: usize, amount: i64) {
        self.members[self.holds[hold].renter].available += amount;
        self.holds[hold].remaining -= amount;
        self.holds[hold].is_open = false;
    }

    pub fn given_back(&mut self, hold: usize, gross: i64) {
        self.charged[hold] -= gross;
        self.members[self.holds[hold].renter].available += gross;
        self.members[self.holds[hold].host].earned -= gross - gross / FEE_DIVISOR;
        self.fees -= gross / FEE_DIVISOR;
    }

    pub fn topped_up(&mut self, member: usize, top_up: String, amount: i64) {
        self.members[member].available += amount;
        self.members[member].top_ups.push(top_up);
        self.at_stripe += amount;
    }

    pub fn refunded(&mut self, member: usize, amount: i64) {
        self.members[member].available -= amount;
        self.at_stripe -= amount;
    }

    pub fn paid_out(&mut self, member: usize, amount: i64) {
        self.members[member].earned -= amount;
        self.at_stripe -= amount;
    }

    pub fn disputed(&mut self, dispute: Dispute) {
        self.members[dispute.member].available -= dispute.amount;
        self.members[dispute.member].open_disputes += 1;
        self.at_stripe -= dispute.amount;
        self.disputes.push(dispute);
    }

    pub fn decided(&mut self, dispute: &Dispute, is_won: bool) {
        self.members[dispute.member].open_disputes -= 1;
        if is_won {
            self.members[dispute.member].available += dispute.amount;
            self.at_stripe += dispute.amount;
        }
    }

    /// What is set aside for the member's rentals.
    pub fn held_of(&self, member: usize) -> i64 {
        self.holds.iter().filter(|hold| hold.renter == member).map(|hold| hold.remaining).sum()
    }
}

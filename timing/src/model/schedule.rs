//! CTAs over time: dispatch, shared bandwidth, waves and tail.
//!
//! A fluid model. Each resident CTA advances at a speed that follows from its fair share of the
//! GPU's bandwidth, of its multiprocessor, and from the bytes it keeps in flight.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Seconds that the whole launch would take if one thing alone bounded it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// At full DRAM and L2 bandwidth, joined by the p-norm.
    pub(crate) shared: f64,
    /// On the pipes of one multiprocessor alone, joined by the p-norm.
    pub(crate) one_sm: f64,
    /// With the bytes in flight of one CTA alone, at unloaded latency.
    pub(crate) one_cta: f64,
}

/// Where the CTAs run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    pub(crate) sms: usize,
    pub(crate) ctas_per_sm: usize,
    /// Seconds before a CTA's steady state, in which it moves nothing to speak of.
    pub(crate) startup: f64,
}

/// Exponent of the p-norm by which limits join: 1 adds them up, infinity takes the largest.
pub(crate) const P: f64 = 3.0;

/// `(sum of x^P)^(1/P)`.
pub(crate) fn norm(times: impl IntoIterator<Item = f64>) -> f64 {
    let sum: f64 = times.into_iter().map(|t| t.powf(P)).sum();
    sum.powf(1.0 / P)
}

/// Seconds of the launch if every slot had the same work and none waited.
pub(crate) fn balanced(demand: Demand, slots: Slots, ctas: usize) -> f64 {
    let resident = ctas.min(slots.sms * slots.ctas_per_sm).max(1) as f64;
    let busy = (ctas.min(slots.sms).max(1)) as f64;
    norm([
        demand.shared,
        demand.one_sm / busy,
        demand.one_cta / resident,
    ])
}

/// Seconds from the first CTA's start to the last one's end.
///
/// `shares` are the CTAs' parts of the whole work, in launch order; they sum to 1.
///
/// Which slot runs which CTA is decided by the shares alone. Were it decided by the simulated
/// times, as in hardware, slower memory could happen to pair the CTAs better and finish sooner;
/// with fixed queues, and a CTA counted as long as it holds its slot, more work is never faster.
pub(crate) fn run(demand: Demand, slots: Slots, shares: &[f64]) -> f64 {
    let mut queues = queues(slots, shares);
    let mut sms: Vec<Sm> = (0..slots.sms).map(|_| Sm::default()).collect();
    let mut starting: BinaryHeap<Reverse<Event>> = BinaryHeap::new();
    let mut resident = 0usize;
    for (slot, queue) in queues.iter().enumerate() {
        if !queue.is_empty() {
            starting.push(Reverse(Event {
                at: slots.startup,
                slot,
            }));
            sms[slot % slots.sms].resident += 1;
            resident += 1;
        }
    }

    let mut now = 0.0_f64;
    let mut speeds = Speeds::new(demand, resident, slots.ctas_per_sm);
    loop {
        let ending = sms
            .iter()
            .filter_map(|sm| {
                let Reverse(end) = sm.ends.peek()?;
                let left = (end.at - sm.progress).max(0.0);
                let at = now + left / speeds.of(sm.resident);
                Some(Event { at, slot: end.slot })
            })
            .min();
        let start = starting.peek().map(|Reverse(start)| start.at);
        let (event, ends) = match (ending, start) {
            (Some(end), start) if start.is_none_or(|start| end.at <= start) => (end, true),
            (_, Some(at)) => {
                let slot = starting.pop().map_or(0, |Reverse(start)| start.slot);
                (Event { at, slot }, false)
            }
            _ => return now,
        };
        for sm in &mut sms {
            sm.progress += (event.at - now) * speeds.of(sm.resident);
        }
        now = event.at;
        let sm = &mut sms[event.slot % slots.sms];
        let queue = &mut queues[event.slot];
        if !ends {
            let share = queue.next().unwrap_or(0.0);
            sm.ends.push(Reverse(Event {
                at: sm.progress + share,
                slot: event.slot,
            }));
            continue;
        }
        sm.ends.pop();
        if queue.is_empty() {
            sm.resident -= 1;
            resident -= 1;
            speeds = Speeds::new(demand, resident, slots.ctas_per_sm);
        } else {
            starting.push(Reverse(Event {
                at: now + slots.startup,
                slot: event.slot,
            }));
        }
    }
}

/// The CTAs of each slot: every CTA in launch order goes to the slot that has least to do, one
/// slot on every multiprocessor before any second one. Slot `i` is on multiprocessor `i % sms`.
fn queues(slots: Slots, shares: &[f64]) -> Vec<Queue> {
    let mut queues: Vec<Queue> = vec![Queue::default(); slots.sms * slots.ctas_per_sm];
    let mut free: BinaryHeap<Reverse<Event>> = (0..queues.len())
        .map(|slot| Reverse(Event { at: 0.0, slot }))
        .collect();
    for &share in shares {
        if let Some(mut least) = free.peek_mut() {
            queues[least.0.slot].shares.push(share);
            least.0.at += share;
        }
    }
    queues
}

/// The CTAs of one slot, in order.
#[derive(Clone, Default)]
struct Queue {
    shares: Vec<f64>,
    done: usize,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.done == self.shares.len()
    }

    fn next(&mut self) -> Option<f64> {
        let share = self.shares.get(self.done).copied();
        self.done += usize::from(share.is_some());
        share
    }
}

/// A multiprocessor; its resident CTAs all advance alike.
#[derive(Default)]
struct Sm {
    /// How far a CTA has come that was active from the start.
    progress: f64,
    /// CTAs that hold a slot, those included that wait for their first loads.
    resident: usize,
    /// The progress at which each active CTA ends.
    ends: BinaryHeap<Reverse<Event>>,
}

/// Parts of the whole work per second, for each number of resident CTAs on a multiprocessor.
struct Speeds(Vec<f64>);

impl Speeds {
    fn new(demand: Demand, resident: usize, ctas_per_sm: usize) -> Self {
        let bandwidth = demand.shared * resident as f64;
        let speed = |on_sm| {
            let seconds = norm([bandwidth, demand.one_sm * on_sm as f64, demand.one_cta]);
            // A launch that does nothing ends at once.
            1.0 / seconds.max(1e-30)
        };
        Self((0..=ctas_per_sm).map(speed).collect())
    }

    fn of(&self, on_sm: usize) -> f64 {
        self.0[on_sm]
    }
}

/// Something that happens to a slot at a time, at a progress, or at a load of work.
#[derive(PartialEq)]
struct Event {
    at: f64,
    slot: usize,
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at
            .total_cmp(&other.at)
            .then(self.slot.cmp(&other.slot))
    }
}

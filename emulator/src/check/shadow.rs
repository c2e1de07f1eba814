//! What orders accesses to shared memory.
//!
//! Each warp has a clock that a barrier advances. Each place remembers its last write and its reads since then as
//! records (warp, lane, clock). Two accesses are ordered when
//! - both are of one warp, and they are of one lane or a warp-level barrier lies between them;
//! - they are of two warps, and the later warp has passed a block-level barrier since.
//!
//! ```text
//!  record   31     30          29..24        23..19   18..0
//!           split  flight/set  lane          warp     clock, or group of a copy      0: no access
//! ```
//!
//! A place is 16 bytes, as asynchronous copies and matrix rows are. One whose words are accessed apart is split into
//! four, and a word whose bytes are, again. Reads by several warps are kept in a set, one record a warp. A copy leaves
//! a record that names its group; when the group was waited for is looked up where it matters. Judging by clocks, not
//! by the order of execution, finds races that this deterministic execution never shows.

use super::order::{Landing, Order};

/// Lane of a record that speaks for the whole warp: `ldmatrix`, or several lanes at one clock.
pub(crate) const ALL_LANES: u32 = 32;
/// Lane of atomic operations, which do not race with each other.
pub(crate) const ATOMIC: u32 = 33;
/// The last number of a group of copies; the warp starts over before it.
pub(crate) const LAST_GROUP: u32 = LAST_CLOCK - 1;

pub(super) const LAST_CLOCK: u32 = (1 << 19) - 1;
const LANE: u32 = 63 << 24;
const FLIGHT: u32 = 1 << 30;
const SET: u32 = 1 << 30;
const SPLIT: u32 = 1 << 31;
/// A write before every access that matters.
const LONG_AGO: u32 = ALL_LANES << 24;

/// Who accesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Party {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
}

/// What an access collides with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Nothing wrote the bytes.
    Uninitialised,
    /// A copy that its thread has not waited for.
    InFlight { warp: u32, lane: u32 },
    /// An unordered write.
    Write { warp: u32, lane: u32 },
    /// An unordered read.
    Read { warp: u32, lane: u32 },
}

/// Records of places of one size.
#[derive(Debug, Default)]
struct Level {
    writers: Vec<u32>,
    readers: Vec<u32>,
}

impl Level {
    fn reset(&mut self, places: usize) {
        for records in [&mut self.writers, &mut self.readers] {
            records.clear();
            records.resize(places, 0);
        }
    }
}

/// The shadow of one block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// Places of 16, 4 and 1 bytes. The finer ones are empty until something is split.
    levels: [Level; 3],
    order: Order,
    sets: Vec<u32>,
    free_sets: Vec<u32>,
}

const fn warp_of(record: u32) -> u32 {
    (record >> 19) & 31
}

const fn lane_of(record: u32) -> u32 {
    (record >> 24) & 63
}

const fn party(record: u32) -> (u32, u32) {
    (warp_of(record), lane_of(record))
}

/// Level and number of places of an aligned access of this many bytes.
const fn places(bytes: u32) -> (usize, usize) {
    match bytes {
        16 => (0, 1),
        8 => (1, 2),
        4 => (1, 1),
        2 => (2, 2),
        _ => (2, 1),
    }
}

/// Bytes of a place.
const SIZES: [usize; 3] = [16, 4, 1];

impl Shadow {
    /// Starts a block: nothing is written, every clock is 1.
    pub(crate) fn reset(&mut self, bytes: usize, warps: usize) {
        self.levels[0].reset(bytes.div_ceil(16));
        self.levels[1].reset(0);
        self.levels[2].reset(0);
        self.sets.clear();
        self.free_sets.clear();
        self.order.reset(warps);
    }

    fn record(&self, who: Party) -> u32 {
        self.order.own(who.warp) | who.warp << 19 | who.lane << 24
    }

    /// All lanes of a warp have met.
    pub(crate) fn warp_sync(&mut self, warp: u32) {
        if self.order.tick(warp) {
            self.rebase();
        }
    }

    /// A warp arrives at a barrier.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32) {
        self.order.arrive(barrier, warp);
        self.warp_sync(warp);
    }

    /// A barrier completes: everything before the arrivals is before these warps.
    pub(crate) fn release(&mut self, barrier: u32, warps: u32) {
        self.order.release(barrier, warps);
    }

    /// These lanes have waited for their copies of a group: from now on they are writes of these threads.
    pub(crate) fn land(&mut self, warp: u32, group: u32, lanes: u32) {
        self.order.land(warp, group, lanes);
    }

    /// A warp's groups are numbered from 0 again: its copies so far are declared over. Happens once in half a million
    /// groups.
    pub(crate) fn restart_groups(&mut self, warp: u32) {
        self.order.restart_groups(warp);
        for record in self.levels.iter_mut().flat_map(|level| &mut level.writers) {
            if *record & (FLIGHT | SPLIT) == FLIGHT && warp_of(*record) == warp {
                *record = LONG_AGO;
            }
        }
    }

    /// A clock is at its end: everything so far is declared over. Once in half a million barriers, a race across
    /// this point would be missed.
    fn rebase(&mut self) {
        let order = &self.order;
        let landed = |record: u32| {
            let landing = order.landing(warp_of(record), record & LAST_CLOCK);
            landing.is_some_and(|landing| landing.clock_of(lane_of(record)).is_some())
        };
        for level in &mut self.levels {
            for record in &mut level.writers {
                let open = *record & FLIGHT != 0 && !landed(*record);
                if *record != 0 && *record & SPLIT == 0 && !open {
                    *record = LONG_AGO;
                }
            }
            level.readers.fill(0);
        }
        self.sets.clear();
        self.free_sets.clear();
        self.order.restart();
    }

    #[inline(always)]
    fn is_ordered(&self, record: u32, who: Party) -> bool {
        let (warp, lane) = party(record);
        self.order.is_over(warp, record & LAST_CLOCK, who)
            || warp == who.warp && lane == who.lane && lane < ALL_LANES
    }

    #[inline(always)]
    fn judge_writer(&self, record: u32, who: Party) -> Option<Conflict> {
        let (warp, lane) = party(record);
        if record & FLIGHT != 0 {
            return self.judge_copy(record, who);
        }
        let atomics = lane == ATOMIC && who.lane == ATOMIC;
        (record != 0 && !atomics && !self.is_ordered(record, who))
            .then_some(Conflict::Write { warp, lane })
    }

    fn judge_copy(&self, record: u32, who: Party) -> Option<Conflict> {
        let (warp, lane) = party(record);
        let landing = self.order.landing(warp, record & LAST_CLOCK);
        let Some(clock) = landing.and_then(|landing| landing.clock_of(lane)) else {
            return Some(Conflict::InFlight { warp, lane });
        };
        let ordered = self.order.is_over(warp, clock, who) || (warp, lane) == (who.warp, who.lane);
        (!ordered).then_some(Conflict::Write { warp, lane })
    }

    #[inline(always)]
    fn judge_readers(&self, record: u32, who: Party) -> Option<Conflict> {
        let unordered = |record: u32| {
            let (warp, lane) = party(record);
            (record != 0 && !self.is_ordered(record, who)).then_some(Conflict::Read { warp, lane })
        };
        if record & SET == 0 {
            return unordered(record);
        }
        let start = (record & !SET) as usize * self.order.warps;
        self.sets[start..][..self.order.warps]
            .iter()
            .find_map(|record| unordered(*record))
    }

    #[inline(always)]
    fn release_set(&mut self, readers: u32) {
        if readers & SET != 0 {
            self.free_sets.push(readers & !SET);
        }
    }

    /// The readers of a place after `who` has read it too.
    #[inline(always)]
    fn with_reader(&mut self, old: u32, who: Party) -> u32 {
        let me = self.record(who);
        if old == 0 || old == me {
            return me;
        }
        if old & SET == 0 && warp_of(old) == who.warp {
            return again(old, me);
        }
        self.with_reader_of_another_warp(old, me, who)
    }

    fn with_reader_of_another_warp(&mut self, old: u32, me: u32, who: Party) -> u32 {
        if old & SET == 0 {
            // A read that is over before this one needs no memory of its own.
            if self.is_ordered(old, who) {
                return me;
            }
            let set = self.free_sets.pop().unwrap_or_else(|| {
                self.sets.resize(self.sets.len() + self.order.warps, 0);
                (self.sets.len() / self.order.warps - 1) as u32
            });
            let records = &mut self.sets[set as usize * self.order.warps..][..self.order.warps];
            records.fill(0);
            records[warp_of(old) as usize] = old;
            records[who.warp as usize] = me;
            return SET | set;
        }
        let mine = &mut self.sets[(old & !SET) as usize * self.order.warps + who.warp as usize];
        *mine = if *mine == 0 { me } else { again(*mine, me) };
        old
    }

    /// Gives the four parts of a place records of their own.
    fn split(&mut self, level: usize, at: usize) {
        let writer = self.levels[level].writers[at];
        if writer & SPLIT != 0 {
            return;
        }
        let parts = self.levels[0].writers.len() * (16 / SIZES[level + 1]);
        if self.levels[level + 1].writers.is_empty() {
            self.levels[level + 1].reset(parts);
        }
        let readers = self.levels[level].readers[at];
        for part in 4 * at..4 * at + 4 {
            let own = if readers & SET != 0 && part != 4 * at {
                let from = (readers & !SET) as usize * self.order.warps;
                self.sets.extend_from_within(from..from + self.order.warps);
                SET | (self.sets.len() / self.order.warps - 1) as u32
            } else {
                readers
            };
            self.levels[level + 1].writers[part] = writer;
            self.levels[level + 1].readers[part] = own;
        }
        self.levels[level].writers[at] = SPLIT;
        self.levels[level].readers[at] = 0;
    }

    /// Splits what holds the places of an access.
    fn reach(&mut self, level: usize, at: usize) {
        if level == 2 {
            self.split(0, at / 16);
            self.split(1, at / 4);
        } else if level == 1 {
            self.split(0, at / 4);
        }
    }

    fn read_place(&mut self, level: usize, at: usize, who: Party) -> Option<Conflict> {
        let writer = self.levels[level].writers[at];
        if writer & SPLIT != 0 {
            let mut found = None;
            for part in 4 * at..4 * at + 4 {
                let conflict = self.read_place(level + 1, part, who);
                found = found.or(conflict);
            }
            return found;
        }
        let conflict = if writer == 0 {
            Some(Conflict::Uninitialised)
        } else {
            self.judge_writer(writer, who)
        };
        self.levels[level].readers[at] = self.with_reader(self.levels[level].readers[at], who);
        conflict
    }

    /// Writes `me`; the parts of a split place become one again.
    fn write_place(&mut self, level: usize, at: usize, who: Party, me: u32) -> Option<Conflict> {
        let writer = self.levels[level].writers[at];
        let mut found = None;
        if writer & SPLIT != 0 {
            for part in 4 * at..4 * at + 4 {
                let conflict = self.write_place(level + 1, part, who, me);
                found = found.or(conflict);
            }
        } else {
            let readers = self.levels[level].readers[at];
            found = self
                .judge_writer(writer, who)
                .or_else(|| self.judge_readers(readers, who));
            self.release_set(readers);
        }
        self.levels[level].writers[at] = me;
        self.levels[level].readers[at] = 0;
        found
    }

    /// An aligned read of 1 to 16 bytes.
    #[inline]
    pub(crate) fn read(&mut self, address: usize, bytes: u32, who: Party) -> Option<Conflict> {
        let (level, count) = places(bytes);
        let first = address / SIZES[level];
        let mut found = None;
        for at in first..first + count {
            self.reach(level, at);
            let conflict = self.read_place(level, at, who);
            found = found.or(conflict);
        }
        found
    }

    /// An aligned write of 1 to 16 bytes.
    #[inline]
    pub(crate) fn write(&mut self, address: usize, bytes: u32, who: Party) -> Option<Conflict> {
        self.write_record(address, bytes, who, self.record(who))
    }

    /// An aligned write by a copy of this group, which lands later.
    #[inline]
    pub(crate) fn copy(
        &mut self,
        address: usize,
        bytes: u32,
        who: Party,
        group: u32,
    ) -> Option<Conflict> {
        self.write_record(
            address,
            bytes,
            who,
            FLIGHT | group | who.warp << 19 | who.lane << 24,
        )
    }

    #[inline(always)]
    fn write_record(
        &mut self,
        address: usize,
        bytes: u32,
        who: Party,
        me: u32,
    ) -> Option<Conflict> {
        let (level, count) = places(bytes);
        let first = address / SIZES[level];
        let mut found = None;
        for at in first..first + count {
            self.reach(level, at);
            let conflict = self.write_place(level, at, who, me);
            found = found.or(conflict);
        }
        found
    }

    /// An atomic update of 4 or 8 bytes.
    pub(crate) fn update(&mut self, address: usize, bytes: u32, warp: u32) -> Option<Conflict> {
        let first = address / 4;
        let mut unwritten = false;
        for at in first..first + bytes as usize / 4 {
            self.reach(1, at);
            unwritten |= self.levels[1].writers[at] == 0;
        }
        let conflict = self.write(address, bytes, Party { warp, lane: ATOMIC });
        if unwritten {
            Some(Conflict::Uninitialised)
        } else {
            conflict
        }
    }

    /// Whether a record is over for the whole of a warp, told from the last such record that was looked at: accesses
    /// of a warp meet the same record again and again.
    #[inline(always)]
    fn known_over(&self, record: u32, known: &mut Known, who: Party) -> bool {
        let key = record & !LANE;
        if key != known.key {
            known.key = key;
            known.lanes = self.lanes_over(record, who);
        }
        // Lanes beyond 31 speak for the whole warp.
        known.lanes >> (lane_of(record) & 63) & 1 != 0
    }

    fn lanes_over(&self, record: u32, who: Party) -> u64 {
        let warp = warp_of(record);
        if record & FLIGHT == 0 {
            return if self.order.is_over(warp, record & LAST_CLOCK, who) {
                u64::MAX
            } else {
                0
            };
        }
        match self.order.landing(warp, record & LAST_CLOCK) {
            Some(Landing {
                lanes,
                clock,
                each: None,
            }) if self.order.is_over(warp, *clock, who) => u64::from(*lanes),
            _ => 0,
        }
    }

    /// Copies of 16 bytes by the lanes of a mask; gives the lanes in conflict.
    pub(crate) fn copy_rows(
        &mut self,
        addresses: &[u64; 32],
        mask: u32,
        warp: u32,
        groups: &[u32; 32],
    ) -> Vec<(u32, Conflict)> {
        let mut found = Vec::new();
        let (mut writers, mut readers) = (Known::default(), Known::default());
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let at = (addresses[lane as usize] / 16) as usize;
            let who = Party { warp, lane };
            let group = groups[lane as usize];
            let me = FLIGHT | group | warp << 19 | lane << 24;
            let (writer, reader) = (self.levels[0].writers[at], self.levels[0].readers[at]);
            let plain = writer & SPLIT == 0 && reader & SET == 0;
            let clear = plain
                && (writer == 0 || self.known_over(writer, &mut writers, who))
                && (reader == 0 || self.known_over(reader, &mut readers, who));
            if clear {
                self.levels[0].writers[at] = me;
                self.levels[0].readers[at] = 0;
            } else if let Some(conflict) = self.write_place(0, at, who, me) {
                found.push((lane, conflict));
            }
        }
        found
    }

    /// Reads of 16 bytes by a warp as one, a row for each lane of a mask; gives the rows in conflict.
    pub(crate) fn read_rows(
        &mut self,
        addresses: &[u64; 32],
        mask: u32,
        warp: u32,
    ) -> Vec<(u32, Conflict)> {
        let mut found = Vec::new();
        let who = Party {
            warp,
            lane: ALL_LANES,
        };
        let me = self.record(who);
        let mut writers = Known::default();
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let at = (addresses[lane as usize] / 16) as usize;
            let (writer, reader) = (self.levels[0].writers[at], self.levels[0].readers[at]);
            let plain = writer & SPLIT == 0 && writer != 0 && reader & SET == 0;
            if plain
                && (reader == 0 || warp_of(reader) == warp)
                && self.known_over(writer, &mut writers, who)
            {
                self.levels[0].readers[at] = me;
            } else if let Some(conflict) = self.read_place(0, at, who) {
                found.push((lane, conflict));
            }
        }
        found
    }
}

/// The lanes for which one record, its lane aside, is over.
#[derive(Debug, Default)]
struct Known {
    key: u32,
    lanes: u64,
}

/// The record of a warp that reads again: several lanes at one clock speak for the warp.
const fn again(before: u32, me: u32) -> u32 {
    if before & LAST_CLOCK == me & LAST_CLOCK && before != me {
        me & !LANE | ALL_LANES << 24
    } else {
        me
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(warp: u32, lane: u32) -> Party {
        Party { warp, lane }
    }

    impl Shadow {
        fn barrier(&mut self, arrived: u32, released: u32) {
            (0..4)
                .filter(|warp| arrived >> warp & 1 != 0)
                .for_each(|warp| self.arrive(0, warp));
            self.release(0, released);
        }
    }

    fn shadow() -> Shadow {
        let mut shadow = Shadow::default();
        shadow.reset(256, 4);
        shadow
    }

    #[test]
    fn a_read_of_nothing_is_uninitialised() {
        let mut s = shadow();
        assert_eq!(s.read(0, 4, who(0, 0)), Some(Conflict::Uninitialised));
        assert_eq!(s.read(16, 16, who(0, 0)), Some(Conflict::Uninitialised));
        assert_eq!(s.write(16, 16, who(0, 0)), None);
        assert_eq!(s.read(16, 16, who(0, 0)), None);
    }

    #[test]
    fn lanes_of_a_warp_are_ordered_by_a_warp_barrier_only() {
        let mut s = shadow();
        assert_eq!(s.write(0, 4, who(0, 0)), None);
        assert_eq!(
            s.read(0, 4, who(0, 1)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        s.warp_sync(0);
        assert_eq!(s.read(0, 4, who(0, 1)), None);
        // The reader of another lane must be over before the next write.
        assert_eq!(
            s.write(0, 4, who(0, 0)),
            Some(Conflict::Read { warp: 0, lane: 1 })
        );
    }

    #[test]
    fn warps_are_ordered_by_a_block_barrier_only() {
        let mut s = shadow();
        s.write(0, 16, who(0, 0));
        s.warp_sync(0);
        s.warp_sync(1);
        assert_eq!(
            s.read(0, 16, who(1, 0)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.read(0, 16, who(1, 0)), None);
        assert_eq!(s.read(0, 16, who(2, 0)), None);
        assert_eq!(
            s.write(0, 16, who(2, 0)),
            Some(Conflict::Read { warp: 1, lane: 0 })
        );
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.write(0, 16, who(3, 0)), None);
    }

    #[test]
    fn a_barrier_of_some_warps_orders_only_them() {
        let mut s = shadow();
        s.write(0, 4, who(0, 0));
        s.barrier(0b0011, 0b0011);
        assert_eq!(s.read(0, 4, who(1, 0)), None);
        assert_eq!(
            s.read(0, 4, who(2, 0)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        // What warp 1 learnt it passes on.
        s.barrier(0b1010, 0b1010);
        assert_eq!(s.read(0, 4, who(3, 0)), None);
    }

    #[test]
    fn an_arrival_publishes_without_learning() {
        let mut s = shadow();
        s.write(0, 4, who(0, 0));
        s.write(4, 4, who(1, 0));
        s.barrier(0b0011, 0b0010);
        assert_eq!(s.read(0, 4, who(1, 0)), None);
        assert!(s.read(4, 4, who(0, 0)).is_some());
        // What comes after the arrival is not published.
        s.arrive(1, 0);
        s.write(8, 4, who(0, 0));
        s.arrive(1, 1);
        s.release(1, 0b0010);
        assert!(s.read(8, 4, who(1, 0)).is_some());
    }

    #[test]
    fn a_copy_in_flight_is_untouchable_until_its_wait() {
        let mut s = shadow();
        assert_eq!(s.copy(0, 16, who(0, 3), 0), None);
        assert_eq!(
            s.read(0, 16, who(0, 3)),
            Some(Conflict::InFlight { warp: 0, lane: 3 })
        );
        s.warp_sync(0);
        assert_eq!(
            s.copy(0, 16, who(0, 3), 0),
            Some(Conflict::InFlight { warp: 0, lane: 3 })
        );
        s.land(0, 0, 1 << 3);
        assert_eq!(s.read(0, 16, who(0, 3)), None);
        assert_eq!(
            s.read(0, 16, who(0, ALL_LANES)),
            Some(Conflict::Write { warp: 0, lane: 3 })
        );
        s.warp_sync(0);
        assert_eq!(s.read(0, 16, who(0, ALL_LANES)), None);
        assert_eq!(
            s.copy(0, 16, who(0, 3), 0),
            Some(Conflict::Read {
                warp: 0,
                lane: ALL_LANES
            })
        );
    }

    #[test]
    fn bytes_of_one_word_are_apart() {
        let mut s = shadow();
        assert_eq!(s.write(0, 2, who(0, 0)), None);
        assert_eq!(s.write(2, 2, who(1, 0)), None);
        assert!(s.write(1, 1, who(1, 0)).is_some());
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.read(0, 4, who(2, 0)), None);
        assert_eq!(s.read(4, 1, who(2, 0)), Some(Conflict::Uninitialised));
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.write(0, 4, who(3, 0)), None);
        assert_eq!(s.read(0, 4, who(3, 0)), None);
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let mut s = shadow();
        s.write(0, 4, who(0, 0));
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.update(0, 4, 0), None);
        assert_eq!(s.update(0, 4, 1), None);
        assert_eq!(s.update(32, 4, 1), Some(Conflict::Uninitialised));
        assert!(s.read(0, 4, who(2, 0)).is_some());
    }

    #[test]
    fn a_full_clock_starts_over_without_false_alarms() {
        let mut s = shadow();
        s.write(0, 4, who(0, 0));
        for _ in 0..=LAST_CLOCK {
            s.warp_sync(0);
        }
        assert_eq!(s.read(0, 4, who(0, 1)), None);
        s.write(4, 4, who(0, 0));
        assert!(s.read(4, 4, who(0, 1)).is_some());
    }

    #[test]
    fn a_set_of_readers_is_reused() {
        let mut s = shadow();
        for _ in 0..100 {
            s.barrier(0b1111, 0b1111);
            s.write(0, 4, who(0, 0));
            s.barrier(0b1111, 0b1111);
            for warp in 0..4 {
                assert_eq!(s.read(0, 4, who(warp, 5)), None);
            }
        }
        assert_eq!(s.sets.len(), 4);
    }
}

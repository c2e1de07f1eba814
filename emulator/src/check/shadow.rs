//! What orders accesses to shared memory.
//!
//! Each warp has a clock that a barrier advances. Each word remembers its last write and its reads since then as
//! records (warp, lane, clock). Two accesses are ordered when
//! - both are of one warp, and they are of one lane or a warp-level barrier lies between them;
//! - they are of two warps, and the later warp has passed a block-level barrier since.
//!
//! ```text
//!  record   31     30          29..24        23..19   18..0
//!           split  flight/set  lane          warp     clock      0: no access
//! ```
//!
//! A word whose bytes are accessed apart is split: four records, one a byte, kept aside. Reads by several warps are
//! kept in a set, one record a warp. A copy in flight marks its record until the wait of its thread. Judging by
//! clocks, not by the order of execution, finds races that this deterministic execution never shows.

/// Lane of a record that speaks for the whole warp: `ldmatrix`, or several lanes at one clock.
pub(crate) const ALL_LANES: u32 = 32;
/// Lane of atomic operations, which do not race with each other.
pub(crate) const ATOMIC: u32 = 33;

const CLOCK: u32 = (1 << 19) - 1;
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

/// The shadow of one block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    writers: Vec<u32>,
    readers: Vec<u32>,
    /// One record a byte, for split words; empty until the first.
    byte_writers: Vec<u32>,
    byte_readers: Vec<u32>,
    warps: usize,
    /// `clocks[w * warps + u]`: accesses of warp u up to this clock are before warp w. On the diagonal: w's own clock.
    clocks: Vec<u32>,
    /// What open barriers will hand on.
    arrivals: Vec<(u32, Vec<u32>)>,
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

impl Shadow {
    /// Starts a block: nothing is written, every clock is 1.
    pub(crate) fn reset(&mut self, bytes: usize, warps: usize) {
        let words = bytes.div_ceil(4);
        for records in [&mut self.writers, &mut self.readers] {
            records.clear();
            records.resize(words, 0);
        }
        self.byte_writers.clear();
        self.byte_readers.clear();
        self.sets.clear();
        self.free_sets.clear();
        self.warps = warps;
        self.arrivals.clear();
        self.clocks.clear();
        self.clocks.resize(warps * warps, 0);
        for warp in 0..warps {
            self.clocks[warp * warps + warp] = 1;
        }
    }

    fn own(&self, warp: u32) -> u32 {
        self.clocks[warp as usize * (self.warps + 1)]
    }

    fn record(&self, who: Party) -> u32 {
        self.own(who.warp) | who.warp << 19 | who.lane << 24
    }

    /// All lanes of a warp have met.
    pub(crate) fn warp_sync(&mut self, warp: u32) {
        let own = &mut self.clocks[warp as usize * (self.warps + 1)];
        *own += 1;
        if *own >= CLOCK {
            self.rebase();
        }
    }

    /// A warp arrives at a barrier: what it did and knew to be over so far is what the barrier hands on.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32) {
        let n = self.warps;
        let at = match self
            .arrivals
            .iter()
            .position(|(other, _)| *other == barrier)
        {
            Some(at) => at,
            None => {
                self.arrivals.push((barrier, vec![0; n]));
                self.arrivals.len() - 1
            }
        };
        let row = &mut self.clocks[warp as usize * n..][..n];
        for (all, known) in self.arrivals[at].1.iter_mut().zip(&*row) {
            *all = (*all).max(*known);
        }
        row[warp as usize] += 1;
        if row[warp as usize] >= CLOCK {
            self.rebase();
        }
    }

    /// A barrier completes: everything before the arrivals is before these warps.
    pub(crate) fn release(&mut self, barrier: u32, warps: u32) {
        let n = self.warps;
        let Some(at) = self
            .arrivals
            .iter()
            .position(|(other, _)| *other == barrier)
        else {
            return;
        };
        let (_, joined) = self.arrivals.swap_remove(at);
        for warp in (0..n).filter(|warp| warps >> warp & 1 != 0) {
            for (known, all) in self.clocks[warp * n..][..n].iter_mut().zip(&joined) {
                *known = (*known).max(*all);
            }
        }
    }

    /// A clock is at its end: everything so far is declared over. Once in half a million barriers, a race across
    /// this point would be missed.
    fn rebase(&mut self) {
        for record in self.writers.iter_mut().chain(&mut self.byte_writers) {
            if *record != 0 && *record & (FLIGHT | SPLIT) == 0 {
                *record = LONG_AGO;
            }
        }
        self.readers.fill(0);
        self.byte_readers.fill(0);
        self.sets.clear();
        self.free_sets.clear();
        let n = self.warps;
        self.arrivals.clear();
        self.clocks.fill(0);
        for warp in 0..n {
            self.clocks[warp * n + warp] = 1;
        }
    }

    #[inline(always)]
    fn is_ordered(&self, record: u32, who: Party) -> bool {
        let (warp, clock) = (warp_of(record), record & CLOCK);
        let known = self.clocks[who.warp as usize * self.warps + warp as usize];
        if warp == who.warp {
            clock < known || lane_of(record) == who.lane && who.lane < ALL_LANES
        } else {
            clock <= known
        }
    }

    #[inline(always)]
    fn judge_writer(&self, record: u32, who: Party) -> Option<Conflict> {
        let (warp, lane) = party(record);
        if record & FLIGHT != 0 {
            return Some(Conflict::InFlight { warp, lane });
        }
        let atomics = lane == ATOMIC && who.lane == ATOMIC;
        (record != 0 && !atomics && !self.is_ordered(record, who))
            .then_some(Conflict::Write { warp, lane })
    }

    fn judge_readers(&self, record: u32, who: Party) -> Option<Conflict> {
        if record == 0 {
            return None;
        }
        let unordered = |record: u32| {
            let (warp, lane) = party(record);
            (record != 0 && !self.is_ordered(record, who)).then_some(Conflict::Read { warp, lane })
        };
        if record & SET == 0 {
            return unordered(record);
        }
        let start = (record & !SET) as usize * self.warps;
        self.sets[start..][..self.warps]
            .iter()
            .find_map(|record| unordered(*record))
    }

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
        let (mine, clock) = (warp_of(old) == who.warp, old & CLOCK);
        if old & SET == 0 && mine {
            let again = clock == me & CLOCK;
            return if again {
                me & !(63 << 24) | ALL_LANES << 24
            } else {
                me
            };
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
                self.sets.resize(self.sets.len() + self.warps, 0);
                (self.sets.len() / self.warps - 1) as u32
            });
            let records = &mut self.sets[set as usize * self.warps..][..self.warps];
            records.fill(0);
            records[warp_of(old) as usize] = old;
            records[who.warp as usize] = me;
            return SET | set;
        }
        let at = (old & !SET) as usize * self.warps + who.warp as usize;
        let before = self.sets[at];
        let again = before & CLOCK == me & CLOCK && before != 0 && before != me;
        self.sets[at] = if again {
            me & !(63 << 24) | ALL_LANES << 24
        } else {
            me
        };
        old
    }

    /// A read of whole words.
    #[inline]
    pub(crate) fn read(&mut self, word: usize, count: usize, who: Party) -> Option<Conflict> {
        if count == 4
            && let (Some(writers), Some(readers)) = (
                self.writers.get(word..word + 4),
                self.readers.get(word..word + 4),
            )
        {
            let (writer, reader) = (writers[0], readers[0]);
            let alike = writers[1..].iter().all(|w| *w == writer)
                && readers[1..].iter().all(|r| *r == reader);
            if alike && writer & SPLIT == 0 && reader & SET == 0 {
                let conflict = if writer == 0 {
                    Some(Conflict::Uninitialised)
                } else {
                    self.judge_writer(writer, who)
                };
                let next = self.with_reader(reader, who);
                if next & SET == 0 {
                    self.readers[word..word + 4].fill(next);
                } else {
                    // One set a word.
                    self.readers[word] = next;
                    for at in word + 1..word + 4 {
                        self.readers[at] = self.with_reader(reader, who);
                    }
                }
                return conflict;
            }
        }
        let mut found = None;
        for at in word..word + count {
            let conflict = self.read_word(at, who);
            found = found.or(conflict);
        }
        found
    }

    fn read_word(&mut self, at: usize, who: Party) -> Option<Conflict> {
        let writer = self.writers[at];
        if writer & SPLIT != 0 {
            return self.read_bytes(at * 4, 4, who);
        }
        let conflict = if writer == 0 {
            Some(Conflict::Uninitialised)
        } else {
            self.judge_writer(writer, who)
        };
        self.readers[at] = self.with_reader(self.readers[at], who);
        conflict
    }

    /// A write of whole words; `flight` when it is a copy that is not waited for.
    #[inline]
    pub(crate) fn write(
        &mut self,
        word: usize,
        count: usize,
        who: Party,
        flight: bool,
    ) -> Option<Conflict> {
        let me = self.record(who) | if flight { FLIGHT } else { 0 };
        if count == 4
            && let (Some(writers), Some(readers)) = (
                self.writers.get(word..word + 4),
                self.readers.get(word..word + 4),
            )
        {
            let (writer, reader) = (writers[0], readers[0]);
            let alike = writers[1..].iter().all(|w| *w == writer)
                && readers[1..].iter().all(|r| *r == reader);
            if alike && writer & SPLIT == 0 && reader & SET == 0 {
                let conflict = self
                    .judge_writer(writer, who)
                    .or_else(|| self.judge_readers(reader, who));
                self.writers[word..word + 4].fill(me);
                self.readers[word..word + 4].fill(0);
                return conflict;
            }
        }
        let mut found = None;
        for at in word..word + count {
            let conflict = self.write_word(at, who, me);
            found = found.or(conflict);
        }
        found
    }

    fn write_word(&mut self, at: usize, who: Party, me: u32) -> Option<Conflict> {
        if self.writers[at] & SPLIT != 0 {
            let conflict = self.write_bytes(at * 4, 4, who);
            // The bytes are alike again.
            for byte in at * 4..at * 4 + 4 {
                self.release_set(self.byte_readers[byte]);
            }
            self.writers[at] = me;
            self.readers[at] = 0;
            return conflict;
        }
        let readers = self.readers[at];
        let conflict = self
            .judge_writer(self.writers[at], who)
            .or_else(|| self.judge_readers(readers, who));
        self.release_set(readers);
        self.writers[at] = me;
        self.readers[at] = 0;
        conflict
    }

    fn split(&mut self, at: usize) {
        if self.writers[at] & SPLIT != 0 {
            return;
        }
        if self.byte_writers.is_empty() {
            self.byte_writers.resize(self.writers.len() * 4, 0);
            self.byte_readers.resize(self.writers.len() * 4, 0);
        }
        let readers = self.readers[at];
        self.byte_writers[at * 4..at * 4 + 4].fill(self.writers[at]);
        self.byte_readers[at * 4] = readers;
        for byte in at * 4 + 1..at * 4 + 4 {
            self.byte_readers[byte] = if readers & SET != 0 {
                let from = (readers & !SET) as usize * self.warps;
                self.sets.extend_from_within(from..from + self.warps);
                SET | (self.sets.len() / self.warps - 1) as u32
            } else {
                readers
            };
        }
        self.writers[at] = SPLIT;
        self.readers[at] = 0;
    }

    /// A read of some bytes.
    pub(crate) fn read_bytes(
        &mut self,
        start: usize,
        count: usize,
        who: Party,
    ) -> Option<Conflict> {
        let mut found = None;
        for byte in start..start + count {
            self.split(byte / 4);
            let writer = self.byte_writers[byte];
            let conflict = if writer == 0 {
                Some(Conflict::Uninitialised)
            } else {
                self.judge_writer(writer, who)
            };
            self.byte_readers[byte] = self.with_reader(self.byte_readers[byte], who);
            found = found.or(conflict);
        }
        found
    }

    /// A write of some bytes.
    pub(crate) fn write_bytes(
        &mut self,
        start: usize,
        count: usize,
        who: Party,
    ) -> Option<Conflict> {
        let me = self.record(who);
        let mut found = None;
        for byte in start..start + count {
            self.split(byte / 4);
            let readers = self.byte_readers[byte];
            let conflict = self
                .judge_writer(self.byte_writers[byte], who)
                .or_else(|| self.judge_readers(readers, who));
            self.release_set(readers);
            self.byte_writers[byte] = me;
            self.byte_readers[byte] = 0;
            found = found.or(conflict);
        }
        found
    }

    /// An atomic update of whole words.
    pub(crate) fn update(&mut self, word: usize, count: usize, warp: u32) -> Option<Conflict> {
        let unwritten = (word..word + count).any(|at| self.writers[at] == 0);
        let conflict = self.write(word, count, Party { warp, lane: ATOMIC }, false);
        if unwritten {
            Some(Conflict::Uninitialised)
        } else {
            conflict
        }
    }

    /// The copy that `who` issued to these words has arrived: from now on it is a write of that thread.
    #[inline]
    pub(crate) fn land(&mut self, word: usize, count: usize, who: Party) {
        let me = self.record(who);
        let same = me & !CLOCK | FLIGHT;
        if let Some(writers) = self.writers.get_mut(word..word + count) {
            for writer in writers {
                if *writer & !CLOCK == same {
                    *writer = me;
                }
            }
        }
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
        assert_eq!(s.read(0, 1, who(0, 0)), Some(Conflict::Uninitialised));
        assert_eq!(s.read(4, 4, who(0, 0)), Some(Conflict::Uninitialised));
        assert_eq!(s.write(4, 4, who(0, 0), false), None);
        assert_eq!(s.read(4, 4, who(0, 0)), None);
    }

    #[test]
    fn lanes_of_a_warp_are_ordered_by_a_warp_barrier_only() {
        let mut s = shadow();
        assert_eq!(s.write(0, 1, who(0, 0), false), None);
        assert_eq!(
            s.read(0, 1, who(0, 1)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        s.warp_sync(0);
        assert_eq!(s.read(0, 1, who(0, 1)), None);
        // The reader of another lane must be over before the next write.
        assert_eq!(
            s.write(0, 1, who(0, 0), false),
            Some(Conflict::Read { warp: 0, lane: 1 })
        );
    }

    #[test]
    fn warps_are_ordered_by_a_block_barrier_only() {
        let mut s = shadow();
        s.write(0, 4, who(0, 0), false);
        s.warp_sync(0);
        s.warp_sync(1);
        assert_eq!(
            s.read(0, 4, who(1, 0)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.read(0, 4, who(1, 0)), None);
        assert_eq!(s.read(0, 4, who(2, 0)), None);
        assert_eq!(
            s.write(0, 4, who(2, 0), false),
            Some(Conflict::Read { warp: 1, lane: 0 })
        );
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.write(0, 4, who(3, 0), false), None);
    }

    #[test]
    fn a_barrier_of_some_warps_orders_only_them() {
        let mut s = shadow();
        s.write(0, 1, who(0, 0), false);
        s.barrier(0b0011, 0b0011);
        assert_eq!(s.read(0, 1, who(1, 0)), None);
        assert_eq!(
            s.read(0, 1, who(2, 0)),
            Some(Conflict::Write { warp: 0, lane: 0 })
        );
        // What warp 1 learnt it passes on.
        s.barrier(0b1010, 0b1010);
        assert_eq!(s.read(0, 1, who(3, 0)), None);
    }

    #[test]
    fn an_arrival_publishes_without_learning() {
        let mut s = shadow();
        s.write(0, 1, who(0, 0), false);
        s.write(1, 1, who(1, 0), false);
        s.barrier(0b0011, 0b0010);
        assert_eq!(s.read(0, 1, who(1, 0)), None);
        assert!(s.read(1, 1, who(0, 0)).is_some());
        // What comes after the arrival is not published.
        s.arrive(1, 0);
        s.write(2, 1, who(0, 0), false);
        s.arrive(1, 1);
        s.release(1, 0b0010);
        assert!(s.read(2, 1, who(1, 0)).is_some());
    }

    #[test]
    fn a_copy_in_flight_is_untouchable_until_its_wait() {
        let mut s = shadow();
        assert_eq!(s.write(0, 4, who(0, 3), true), None);
        assert_eq!(
            s.read(0, 4, who(0, 3)),
            Some(Conflict::InFlight { warp: 0, lane: 3 })
        );
        s.warp_sync(0);
        assert_eq!(
            s.write(0, 4, who(0, 3), true),
            Some(Conflict::InFlight { warp: 0, lane: 3 })
        );
        s.land(0, 4, who(0, 3));
        assert_eq!(s.read(0, 4, who(0, 3)), None);
        assert_eq!(
            s.read(0, 4, who(0, ALL_LANES)),
            Some(Conflict::Write { warp: 0, lane: 3 })
        );
        s.warp_sync(0);
        assert_eq!(s.read(0, 4, who(0, ALL_LANES)), None);
        assert_eq!(
            s.write(0, 4, who(0, 3), true),
            Some(Conflict::Read {
                warp: 0,
                lane: ALL_LANES
            })
        );
    }

    #[test]
    fn bytes_of_one_word_are_apart() {
        let mut s = shadow();
        assert_eq!(s.write_bytes(0, 2, who(0, 0)), None);
        assert_eq!(s.write_bytes(2, 2, who(1, 0)), None);
        assert!(s.write_bytes(1, 1, who(1, 0)).is_some());
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.read(0, 1, who(2, 0)), None);
        assert_eq!(s.read_bytes(4, 1, who(2, 0)), Some(Conflict::Uninitialised));
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.write(0, 1, who(3, 0), false), None);
        assert_eq!(s.read(0, 1, who(3, 0)), None);
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let mut s = shadow();
        s.write(0, 1, who(0, 0), false);
        s.barrier(0b1111, 0b1111);
        assert_eq!(s.update(0, 1, 0), None);
        assert_eq!(s.update(0, 1, 1), None);
        assert_eq!(s.update(8, 1, 1), Some(Conflict::Uninitialised));
        assert!(s.read(0, 1, who(2, 0)).is_some());
    }

    #[test]
    fn a_full_clock_starts_over_without_false_alarms() {
        let mut s = shadow();
        s.write(0, 1, who(0, 0), false);
        for _ in 0..=CLOCK {
            s.warp_sync(0);
        }
        assert_eq!(s.read(0, 1, who(0, 1)), None);
        s.write(1, 1, who(0, 0), false);
        assert!(s.read(1, 1, who(0, 1)).is_some());
    }

    #[test]
    fn a_set_of_readers_is_reused() {
        let mut s = shadow();
        for _ in 0..100 {
            s.barrier(0b1111, 0b1111);
            s.write(0, 1, who(0, 0), false);
            s.barrier(0b1111, 0b1111);
            for warp in 0..4 {
                assert_eq!(s.read(0, 1, who(warp, 5)), None);
            }
        }
        assert_eq!(s.sets.len(), 4);
    }
}

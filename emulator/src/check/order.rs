//! The order that barriers and waits make.

use super::shadow::{LAST_CLOCK, Party};

/// Clocks of a block's warps, and what each knows to be over.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) warps: usize,
    /// `clocks[w * warps + u]`: accesses of warp u up to this clock are before warp w. On the diagonal: w's own clock.
    clocks: Vec<u32>,
    /// What open barriers will hand on.
    arrivals: Vec<(u32, Vec<u32>)>,
    /// By warp and group of copies.
    landings: Vec<Vec<Landing>>,
}

/// When the copies of one group of a warp were waited for.
#[derive(Debug, Clone, Default)]
pub(super) struct Landing {
    pub(super) lanes: u32,
    pub(super) clock: u32,
    /// Each lane's clock, when they differ.
    pub(super) each: Option<Box<[u32; 32]>>,
}

impl Landing {
    /// The clock at which a lane waited, if it did.
    pub(super) fn clock_of(&self, lane: u32) -> Option<u32> {
        let clock = self
            .each
            .as_ref()
            .map_or(self.clock, |each| each[lane as usize & 31]);
        (self.lanes >> (lane & 31) & 1 != 0).then_some(clock)
    }
}

impl Order {
    /// Starts a block.
    pub(super) fn reset(&mut self, warps: usize) {
        self.warps = warps;
        self.landings.iter_mut().for_each(Vec::clear);
        self.landings.resize(warps, Vec::new());
        self.restart();
    }

    /// Starts every clock again.
    pub(super) fn restart(&mut self) {
        let n = self.warps;
        self.arrivals.clear();
        self.clocks.clear();
        self.clocks.resize(n * n, 0);
        for warp in 0..n {
            self.clocks[warp * n + warp] = 1;
        }
    }

    /// The clock of a warp.
    #[inline(always)]
    pub(super) fn own(&self, warp: u32) -> u32 {
        self.clocks[warp as usize * (self.warps + 1)]
    }

    /// A warp's clock ticks; true when it is at its end.
    pub(super) fn tick(&mut self, warp: u32) -> bool {
        let own = &mut self.clocks[warp as usize * (self.warps + 1)];
        *own += 1;
        *own >= LAST_CLOCK
    }

    /// A warp arrives at a barrier: what it did and knew to be over so far is what the barrier hands on.
    pub(super) fn arrive(&mut self, barrier: u32, warp: u32) {
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
        let row = &self.clocks[warp as usize * n..][..n];
        for (all, known) in self.arrivals[at].1.iter_mut().zip(row) {
            *all = (*all).max(*known);
        }
    }

    /// A barrier completes: everything before the arrivals is before these warps.
    pub(super) fn release(&mut self, barrier: u32, warps: u32) {
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

    /// These lanes have waited for their copies of a group: from now on they are writes of these threads.
    pub(super) fn land(&mut self, warp: u32, group: u32, lanes: u32) {
        let clock = self.own(warp);
        let groups = &mut self.landings[warp as usize];
        let group = group as usize;
        if groups.len() <= group {
            groups.resize(group + 1, Landing::default());
        }
        let landing = &mut groups[group];
        if landing.lanes != 0 && (landing.clock != clock || landing.each.is_some()) {
            let each = landing
                .each
                .get_or_insert_with(|| Box::new([landing.clock; 32]));
            for (lane, each) in each.iter_mut().enumerate() {
                if lanes >> lane & 1 != 0 {
                    *each = clock;
                }
            }
        }
        landing.clock = clock;
        landing.lanes |= lanes;
    }

    /// Forgets the groups of a warp, which are numbered from 0 again.
    pub(super) fn restart_groups(&mut self, warp: u32) {
        self.landings[warp as usize].clear();
    }

    /// The lanes that have waited for a group, the clock at which the last did, and each lane's where they differ.
    pub(super) fn landing(&self, warp: u32, group: u32) -> Option<&Landing> {
        self.landings[warp as usize].get(group as usize)
    }

    /// Whether an access at this clock is before `who` for every lane of its warp.
    #[inline(always)]
    pub(super) fn is_over(&self, warp: u32, clock: u32, who: Party) -> bool {
        let known = self.clocks[who.warp as usize * self.warps + warp as usize];
        if warp == who.warp {
            clock < known
        } else {
            clock <= known
        }
    }
}

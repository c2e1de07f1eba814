//! A small seeded generator: the same numbers on every machine and in every release, so that a seed
//! printed with a failure reproduces it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a proof's random inputs are made from; printed with every failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A seed that no earlier run had, from the hash keys that the operating system gives a process.
    pub fn fresh() -> Self {
        use std::hash::BuildHasher;
        Seed(std::hash::RandomState::new().hash_one("pagesmith-prove"))
    }

    /// The seed of part `index` of what this seed makes.
    #[must_use]
    pub fn part(self, index: u64) -> Self {
        Seed(mix(self.0 ^ mix(index.wrapping_add(0x9E37_79B9_7F4A_7C15))))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: Seed) -> Self {
        Random { state: seed.0 }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `end`; 0 when `end` is 0. Multiply-shift, its bias is below 2^-32 for small ends.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// A number of `[0, 1)`.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// A number of the standard normal distribution, cut at ±3.5: the sum of 12 uniform numbers, which
    /// needs no logarithm whose last bit differs between machines.
    pub fn normal(&mut self) -> f32 {
        let mut sum = -393_210i64;
        for _ in 0..3 {
            let bits = self.bits();
            sum += (0..4)
                .map(|i| (bits >> (16 * i) & 0xFFFF) as i64)
                .sum::<i64>();
        }
        (sum as f32 / 65_536.0).clamp(-3.5, 3.5)
    }

    /// Puts `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            let other = self.below(index as u32 + 1) as usize;
            items.swap(index, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // First outputs of SplitMix64 for seed 1234567, as listed by its reference implementation.
        let mut random = Random::new(Seed(1_234_567));
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(Seed(7));
        let numbers: Vec<f64> = (0..20_000).map(|_| f64::from(random.normal())).collect();
        let mean = numbers.iter().sum::<f64>() / 20_000.0;
        let variance = numbers.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }

    #[test]
    fn parts_of_a_seed_differ_from_each_other_and_from_the_seed() {
        let mut all: Vec<u64> = (0..1000).map(|index| Seed(3).part(index).0).collect();
        all.push(3);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1001);
    }
}

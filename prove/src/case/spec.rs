//! What a case is to exercise.

/// Strides of the cache and of the queries and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strides {
    /// `[blocks, tokens, heads, D]`, contiguous.
    Nhd,
    /// `[blocks, heads, tokens, D]`, contiguous.
    Hnd,
    /// NHD with a gap after every head, token and block, and after every row of queries and outputs.
    Padded,
    /// K in NHD with gaps, V in HND: strides that are taken for each other show.
    Mixed,
}

impl Strides {
    /// Every arrangement.
    pub const ALL: [Strides; 4] = [Strides::Nhd, Strides::Hnd, Strides::Padded, Strides::Mixed];
}

/// What the scores of a sequence look like, in natural units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Standard normal scores.
    Plain,
    /// Scores of standard deviation 4: a few tokens take most of the weight.
    Peaked,
    /// From −30 to 30 along the sequence: the running maximum keeps moving.
    Rising,
    /// From 30 to −30: the first tokens take all.
    Falling,
    /// Around −120: `exp` of a score underflows unless the maximum is taken off.
    Low,
    /// Around 120: `exp` of a score overflows unless the maximum is taken off.
    High,
}

impl Values {
    /// Every kind.
    pub const ALL: [Values; 6] = [
        Values::Plain,
        Values::Peaked,
        Values::Rising,
        Values::Falling,
        Values::Low,
        Values::High,
    ];
}

/// What table entries past the end of a sequence hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TailEntries {
    /// Rows as long as the longest sequence needs: a read beyond the table is a read out of bounds.
    Exact,
    /// Some more entries a row.
    Spare(u32),
}

/// What a case is to exercise; [`super::Case::generate`] makes it for a kernel and a seed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CaseSpec {
    /// Names the case in reports.
    pub name: String,
    /// KV tokens of each sequence.
    pub lengths: Vec<u32>,
    /// KV heads.
    pub kv_heads: u32,
    /// Strides of cache, queries and outputs.
    pub strides: Strides,
    /// Table entries past the end of a sequence.
    pub tail: TailEntries,
    /// What the scores look like.
    pub values: Values,
    /// Multiprocessors the plan is to fill: few leave sequences whole, many split them.
    pub sms: u32,
    /// Lowest block id in use; large ones put the cache beyond 32-bit offsets.
    pub first_block: u32,
}

impl CaseSpec {
    /// Plain values in a contiguous NHD cache of one KV head, planned for one multiprocessor.
    pub fn of_lengths(name: &str, lengths: Vec<u32>) -> Self {
        CaseSpec {
            name: name.to_owned(),
            lengths,
            kv_heads: 1,
            strides: Strides::Nhd,
            tail: TailEntries::Spare(3),
            values: Values::Plain,
            sms: 1,
            first_block: 0,
        }
    }
}

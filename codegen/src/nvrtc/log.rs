//! What `ptxas -v` says about each kernel. Spilled bytes are found nowhere else.

use std::collections::BTreeMap;

/// One kernel's paragraph of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PtxasLine {
    pub(super) stack_bytes: u32,
    pub(super) spill_store_bytes: u32,
    pub(super) spill_load_bytes: u32,
}

/// The paragraphs by kernel.
///
/// ```text
/// ptxas info    : Function properties for pagesmith_decode
/// ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
/// ```
pub(super) fn spills(log: &str) -> BTreeMap<&str, PtxasLine> {
    let mut kernels = BTreeMap::new();
    let mut current = None;
    for line in log.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            current = Some(name.trim());
        } else if let Some(name) = current
            && let Some(parsed) = properties(line)
        {
            kernels.insert(name, parsed);
            current = None;
        }
    }
    kernels
}

fn properties(line: &str) -> Option<PtxasLine> {
    let bytes_before = |what: &str| {
        let (before, _) = line.split_once(what)?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some(PtxasLine {
        stack_bytes: bytes_before(" bytes stack frame")?,
        spill_store_bytes: bytes_before(" bytes spill stores")?,
        spill_load_bytes: bytes_before(" bytes spill loads")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_log_are_read() {
        let log = "ptxas info    : Compiling entry function 'a' for 'sm_80'\n\
                   ptxas info    : Function properties for a\n\
                   ptxas         .     272 bytes stack frame, 536 bytes spill stores, 560 bytes spill loads\n\
                   ptxas info    : Used 32 registers\n\
                   ptxas info    : Function properties for b\n    \
                   8 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n";
        let found = spills(log);
        assert_eq!(
            found["a"],
            PtxasLine {
                stack_bytes: 272,
                spill_store_bytes: 536,
                spill_load_bytes: 560
            }
        );
        assert_eq!(found["b"].spill_load_bytes, 4);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_paragraph_without_numbers_gives_no_kernel() {
        assert!(spills("ptxas info : Function properties for a\nnothing\n").is_empty());
    }
}

use pagesmith_timing::sass::Class;
use pagesmith_timing::{LineCounts, count_sass};
const CUBIN: &[u8] = include_bytes!("fixtures/forms.cubin");
const COUNTS: &str = include_str!("fixtures/forms.counts");
fn counts(run: &str) -> LineCounts {
    COUNTS.lines().filter_map(|r| { let f: Vec<&str> = r.split('\t').collect(); (f[0]==run).then(|| (f[1].parse().unwrap(), f[2].parse().unwrap())) }).collect()
}
#[test]
fn show() {
    for (run, entry) in [("forms_decode","forms_decode"),("forms_merge/7","forms_merge"),("forms_merge/3","forms_merge")] {
        let t = std::time::Instant::now();
        let c = count_sass(CUBIN, entry, &counts(run)).unwrap();
        println!("{run} total {} unmapped {} unknown {} imbalance {} in {:?}", c.total(), c.unmapped, c.unknown_opcodes, c.imbalance(), t.elapsed());
        for b in &c.balance { println!("  {:?}", b); }
        for b in &c.blocks { println!("   {:04x} +{} x{} {:?}", b.first*16, b.instructions, b.executions, b.agreement); }
        let _ = Class::Tensor;
    }
}

//! Paged decode attention, one query token a sequence.

use crate::case::Case;

/// The right result of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// `[sequences, query heads, head dim]`.
    pub out: Vec<f64>,
    /// Natural log-sum-exp of the scaled scores, `[sequences, query heads]`; -inf for no tokens.
    pub lse: Vec<f64>,
}

/// Attends in f64 over the dequantised cache:
/// `out = softmax(scale · k_scale · q Kᵀ) V · v_scale`.
///
/// A sequence of length 0 gives 0 and a log-sum-exp of -inf. NaN in a live key makes all outputs of its
/// KV head NaN, NaN in a live value its dim's.
///
/// ```
/// use pagesmith_prove::{Seed, case::{Case, CaseSpec}, reference::attend};
/// # use pagesmith_spec::{KernelSpec, KvDtype, KvLayout, Lse, Operation, QueryDtype, TableForm};
/// # let kernel = KernelSpec {
/// #     operation: Operation::Decode, head_dim: 64, group: 2, block_size: 16,
/// #     query: QueryDtype::F16, kv: KvDtype::F16, layout: KvLayout::DimContiguous,
/// #     table: TableForm::Dense, lse: Lse::Written,
/// # };
/// let case = Case::generate(&kernel, &CaseSpec::of_lengths("two", vec![0, 5]), Seed(1));
/// let right = attend(&case);
/// let row = case.q_heads() as usize * 64;
/// assert!(right.out[..row].iter().all(|&x| x == 0.0) && right.lse[0] == f64::NEG_INFINITY);
/// assert!(right.lse[row / 64].is_finite());
/// ```
pub fn attend(case: &Case) -> Attention {
    let (sequences, heads) = (case.lengths.len(), case.q_heads() as usize);
    let mut attention = Attention {
        out: Vec::with_capacity(sequences * heads * case.head_dim()),
        lse: Vec::with_capacity(sequences * heads),
    };
    for sequence in 0..sequences {
        for kv_head in 0..case.kv_heads {
            attend_group(case, sequence, kv_head, &mut attention);
        }
    }
    attention
}

/// The query heads of one KV head of one sequence.
fn attend_group(case: &Case, sequence: usize, kv_head: u32, attention: &mut Attention) {
    let dim = case.head_dim();
    let tokens = 0..case.lengths[sequence];
    let keys: Vec<f64> = tokens
        .clone()
        .flat_map(|token| case.key(sequence, token, kv_head))
        .collect();
    let values: Vec<f64> = tokens
        .flat_map(|token| case.value(sequence, token, kv_head))
        .collect();
    for head in kv_head * case.kernel.group..(kv_head + 1) * case.kernel.group {
        let query = case.query(sequence, head);
        let factor = f64::from(case.scale) * f64::from(case.k_scale);
        let scores: Vec<f64> = keys
            .chunks_exact(dim)
            .map(|key| factor * dot(&query, key))
            .collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut out = vec![0.0; dim];
        for (weight, value) in weights.iter().zip(values.chunks_exact(dim)) {
            for (out, value) in out.iter_mut().zip(value) {
                *out += weight * value;
            }
        }
        if weights.is_empty() {
            attention.lse.push(f64::NEG_INFINITY);
        } else {
            let factor = f64::from(case.v_scale) / sum;
            out.iter_mut().for_each(|out| *out *= factor);
            attention.lse.push(max + sum.ln());
        }
        attention.out.extend(out);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::{kernel, one_token_of_ones};
    use crate::{Seed, case::CaseSpec};
    use pagesmith_spec::KvDtype;

    #[test]
    fn one_token_gives_its_value_times_the_value_scale() {
        let mut case = one_token_of_ones(KvDtype::Fp8E4M3);
        case.v_scale = 3.0;
        let right = attend(&case);
        assert!(right.out.iter().all(|&out| (out - 3.0).abs() < 1e-12));
        // q·k = 64 ones, scaled by softmax scale and key scale
        let score = 64.0 * f64::from(case.scale) * f64::from(case.k_scale);
        assert!(right.lse.iter().all(|&lse| (lse - score).abs() < 1e-9));
    }

    #[test]
    fn equal_scores_average_the_values_and_add_ln_n() {
        // A zero query scores every key 0.
        let spec = CaseSpec::of_lengths("even", vec![37]);
        let mut case = Case::generate(&kernel(KvDtype::F16), &spec, Seed(2));
        case.q.fill(0);
        let right = attend(&case);
        let mean: f64 = (0..37).map(|token| case.value(0, token, 0)[5]).sum::<f64>() / 37.0;
        assert!((right.out[5] - mean).abs() < 1e-12);
        assert!((right.lse[0] - 37f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_nan_key_poisons_its_kv_head_and_a_nan_value_only_its_dim() {
        let spec = CaseSpec {
            kv_heads: 2,
            ..CaseSpec::of_lengths("nan", vec![20])
        };
        let kernel = kernel(KvDtype::Fp8E4M3);
        let mut case = Case::generate(&kernel, &spec, Seed(3));
        let at = case.value_offset(0, 7, 1) + 9;
        case.v[at] = 0xFF;
        let group = kernel.group as usize * 64;
        let nan: Vec<usize> = (0..2 * group)
            .filter(|&i| attend(&case).out[i].is_nan())
            .collect();
        let expected: Vec<usize> = (0..kernel.group as usize)
            .map(|h| group + h * 64 + 9)
            .collect();
        assert_eq!(nan, expected);
        let at = case.key_offset(0, 3, 0);
        case.k[at] = 0x7F;
        let right = attend(&case);
        assert!(right.out[..group].iter().all(|out| out.is_nan()));
        assert!(
            right.lse[..kernel.group as usize]
                .iter()
                .all(|lse| lse.is_nan())
        );
    }
}

//! The hand-picked mutants.

use super::{CaughtBy, Edit, MutantKernel, Mutation, Operand, Place};
use pagesmith_emulator::FindingKind;

const DECODE: &str = "pagesmith_decode";
const MERGE: &str = "pagesmith_merge";
const RACE: CaughtBy = CaughtBy::Check(FindingKind::SharedRace);
const IN_FLIGHT: CaughtBy = CaughtBy::Check(FindingKind::InFlightCopy);
const MINUS_INFINITY: &str = "0fFF800000";

const fn decode(
    name: &'static str,
    opcode: &'static str,
    operand: Operand,
    nth: usize,
    edit: Edit,
    expected: CaughtBy,
) -> Mutation {
    Mutation {
        name,
        place: Place {
            entry: DECODE,
            opcode,
            operand,
            nth,
        },
        edit,
        expected,
    }
}

/// Mutants of what all kernels share: parameters, stores, the table, the merge.
fn shared() -> Vec<Mutation> {
    use Operand::{Any, Field, Register};
    let numbers = CaughtBy::Numbers;
    let merge = |name, opcode, edit| Mutation {
        name,
        place: Place {
            entry: MERGE,
            opcode,
            operand: Any,
            nth: 0,
        },
        edit,
        expected: numbers,
    };
    vec![
        decode(
            "values read with the keys' token stride",
            "ld.param",
            Field("v_token_stride"),
            0,
            Edit::Field("k_token_stride"),
            numbers,
        ),
        decode(
            "keys read with the values' head stride",
            "ld.param",
            Field("k_head_stride"),
            0,
            Edit::Field("v_head_stride"),
            numbers,
        ),
        decode(
            "outputs stored with the queries' head stride",
            "ld.param",
            Field("out_head_stride"),
            0,
            Edit::Field("q_head_stride"),
            CaughtBy::Stray,
        ),
        decode(
            "log-sum-exp of a partial not stored",
            "st.global.f32",
            Any,
            0,
            Edit::Drop,
            CaughtBy::Check(FindingKind::UninitialisedMemory),
        ),
        decode(
            "log-sum-exp not stored",
            "st.global.f32",
            Any,
            1,
            Edit::Drop,
            CaughtBy::Unwritten,
        ),
        decode(
            "output not stored",
            "st.global.v2.u32",
            Any,
            0,
            Edit::Drop,
            CaughtBy::Unwritten,
        ),
        decode(
            "block ids fetched beyond the table",
            "setp.ge.u32",
            Register(2),
            0,
            Edit::Set(2, "-1"),
            CaughtBy::Check(FindingKind::OutOfBounds),
        ),
        merge(
            "partials merged with unexponentiated weights",
            "ex2.approx",
            Edit::Opcode("ex2.approx.ftz", "mov"),
        ),
    ]
}

/// Mutants of the tensor-core engine, whatever the cache holds.
///
/// `values_copy` is which of the copies with a size is the loop's first of values: rows of fewer bytes take
/// fewer instructions.
fn mma(values_copy: usize) -> Vec<Mutation> {
    use Operand::{Any, Count, Is, Register};
    let numbers = CaughtBy::Numbers;
    let inactive = CaughtBy::Check(FindingKind::InactiveLane);
    vec![
        decode(
            "no barrier between the copy of the queries and their use",
            "bar.sync",
            Any,
            0,
            Edit::Drop,
            RACE,
        ),
        decode(
            "no barrier between the use of the queries and the refill of their stage",
            "bar.sync",
            Any,
            1,
            Edit::Drop,
            RACE,
        ),
        decode(
            "no barrier between the last tile and the combine's rows",
            "bar.sync",
            Any,
            2,
            Edit::Drop,
            RACE,
        ),
        decode(
            "no barrier between writing and reading the combine's rows",
            "bar.sync",
            Any,
            3,
            Edit::Drop,
            RACE,
        ),
        decode(
            "no warp barrier between the copies of a tile and its use",
            "bar.warp.sync",
            Any,
            0,
            Edit::Drop,
            RACE,
        ),
        decode(
            "one tile too few waited for",
            "cp.async.wait_group",
            Is(0, "1"),
            0,
            Edit::Set(0, "2"),
            IN_FLIGHT,
        ),
        decode(
            "queries not waited for",
            "cp.async.wait_group",
            Is(0, "2"),
            0,
            Edit::Set(0, "3"),
            IN_FLIGHT,
        ),
        decode(
            "copies of the queries not committed",
            "cp.async.commit_group",
            Any,
            0,
            Edit::Drop,
            IN_FLIGHT,
        ),
        decode(
            "copies of the prologue not committed",
            "cp.async.commit_group",
            Any,
            1,
            Edit::Drop,
            IN_FLIGHT,
        ),
        decode(
            "copies of the loop not committed",
            "cp.async.commit_group",
            Any,
            2,
            Edit::Drop,
            IN_FLIGHT,
        ),
        decode(
            "swizzle dropped from a copy's address",
            "xor.b32",
            Register(2),
            0,
            Edit::Forward(1),
            numbers,
        ),
        decode(
            "swizzle dropped from a step of ldmatrix",
            "xor.b32",
            Is(2, "32"),
            0,
            Edit::Forward(1),
            numbers,
        ),
        decode(
            "A fragment with two registers swapped",
            "mma.sync",
            Any,
            0,
            Edit::SwapMembers(1, 1, 2),
            numbers,
        ),
        decode(
            "weights with the registers of their fragment swapped",
            "mma.sync",
            Any,
            10,
            Edit::SwapMembers(2, 0, 1),
            numbers,
        ),
        decode(
            "values not transposed",
            "ldmatrix.sync.aligned.m8n8.x4.trans",
            Any,
            0,
            Edit::Opcode(".trans", ""),
            numbers,
        ),
        decode(
            "scores of rows past the end not masked",
            "selp.f32",
            Is(2, MINUS_INFINITY),
            0,
            Edit::Forward(1),
            numbers,
        ),
        decode(
            "values past the end not zero-filled",
            "cp.async.cg",
            Count(4),
            values_copy,
            Edit::Truncate(3),
            numbers,
        ),
        decode(
            "lanes rescale on their own",
            "vote.sync",
            Any,
            0,
            Edit::Forward(1),
            inactive,
        ),
        decode(
            "maximum not shared by the lanes of a head",
            "shfl.sync.bfly",
            Any,
            0,
            Edit::Forward(1),
            numbers,
        ),
        decode(
            "weights packed in the wrong order",
            "cvt.rn",
            Count(3),
            0,
            Edit::Swap(1, 2),
            numbers,
        ),
    ]
}

fn e4m3() -> Vec<Mutation> {
    use Operand::{Any, Field, Is};
    let numbers = CaughtBy::Numbers;
    vec![
        decode(
            "value scale taken from the keys",
            "ld.param",
            Field("v_scale"),
            0,
            Edit::Field("k_scale"),
            numbers,
        ),
        decode(
            "codes shifted by a bit too few",
            "shr.u32",
            Is(2, "1"),
            0,
            Edit::Forward(1),
            numbers,
        ),
        decode(
            "gain of one fragment dropped",
            "mul.rn.f16x2",
            Any,
            0,
            Edit::Forward(1),
            numbers,
        ),
    ]
}

fn simt() -> Vec<Mutation> {
    use Operand::Any;
    let numbers = CaughtBy::Numbers;
    vec![
        decode(
            "no barrier between writing and reading the combine's rows",
            "bar.sync",
            Any,
            0,
            Edit::Drop,
            RACE,
        ),
        decode(
            "a dot product not summed over its lanes",
            "shfl.sync.bfly",
            Any,
            0,
            Edit::Forward(1),
            numbers,
        ),
    ]
}

/// The mutants of a kernel.
pub fn catalogue(kernel: MutantKernel) -> Vec<Mutation> {
    let own = match kernel {
        MutantKernel::MmaBf16 => mma(6),
        MutantKernel::MmaE4m3 => [mma(4), e4m3()].concat(),
        MutantKernel::SimtBf16 => simt(),
    };
    [shared(), own].concat()
}

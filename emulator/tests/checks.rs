//! Every check: a kernel with the fault, which must be found, and its correct twin, which must be clean.

mod common;

use common::{Outcome, module, run, run_with};
use pagesmith_emulator::{Checks, FindingKind, Launch, Memory, Options, Program, launch};

/// Runs both and demands exactly this kind of finding from the first and none from the second.
fn faulty_and_correct(
    declarations: &str,
    faulty: &str,
    correct: &str,
    threads: u32,
    kind: FindingKind,
) -> Outcome {
    let clean = run(&module(declarations, correct), threads, &[1; 8192]);
    assert!(
        clean.report.is_clean(),
        "correct twin: {:#?}",
        clean.report.findings
    );
    let found = run(&module(declarations, faulty), threads, &[1; 8192]);
    assert!(!found.report.is_clean(), "not found: {kind}");
    assert!(
        found.kinds().iter().all(|other| *other == kind),
        "{:#?}",
        found.report.findings
    );
    found
}

const SHARED: &str = ".shared .align 16 .b8 sh[8192];";
const INDEX: &str = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r0; bar.sync 0; ";

#[test]
fn a_global_access_past_the_end_is_found_and_harmless() {
    let body = |offset: u32| {
        format!(
            "mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0; mov.u32 %r1, 9;
             st.global.u32 [%rd1+{offset}], %r0;
             ld.global.u32 %r1, [%rd1+{offset}];
             st.global.u32 [%rd1], %r1;"
        )
    };
    let edge = (1 << 20) - 128 + 4;
    let found = faulty_and_correct("", &body(edge), &body(0), 32, FindingKind::OutOfBounds);
    assert_eq!(found.report.findings.len(), 2);
    for (finding, line) in found.report.findings.iter().zip([10, 11]) {
        assert_eq!(
            (
                finding.warp,
                finding.lane,
                finding.occurrences,
                finding.ptx_line
            ),
            (0, 31, 1, line)
        );
        assert_eq!(finding.allocation.as_deref(), Some("data"));
        assert_eq!(finding.address, Some(found.data.0 + (1 << 20)));
        assert!(
            finding.message.contains("0 bytes past the end of `data`"),
            "{}",
            finding.message
        );
    }
    // The store was dropped and the load gave 0; the other lanes went on.
    assert_eq!(found.words(30 * 4, 2), [30, 0]);
}

#[test]
fn wild_and_null_pointers_are_found() {
    for address in ["0", "-1", "0x7fffffffffff", "64"] {
        let outcome = run(
            &module(
                "",
                &format!("mov.u64 %rd1, {address}; st.global.u8 [%rd1], 1;"),
            ),
            1,
            &[],
        );
        assert_eq!(outcome.kinds(), [FindingKind::OutOfBounds], "{address}");
    }
}

#[test]
fn shared_local_and_parameter_bounds_are_kept() {
    let declarations = ".shared .align 16 .b8 sh[8192]; .local .align 8 .b8 lo[16];";
    for (faulty, correct) in [
        ("st.shared.u32 [sh+8192], 1;", "st.shared.u32 [sh+8188], 1;"),
        ("st.local.u64 [lo+16], 1;", "st.local.u64 [lo+8], 1;"),
        ("ld.param.u64 %rd1, [data+8];", "ld.param.u64 %rd1, [data];"),
        (
            "mov.u64 %rd1, -8; st.shared.u64 [%rd1], 1;",
            "mov.u64 %rd1, 8; st.shared.u64 [%rd1], 1;",
        ),
        (
            "mov.u64 %rd1, sh; cvta.shared.u64 %rd1, %rd1; st.u32 [%rd1+8192], 1;",
            "mov.u64 %rd1, sh; cvta.shared.u64 %rd1, %rd1; st.u32 [%rd1], 1;",
        ),
    ] {
        faulty_and_correct(declarations, faulty, correct, 1, FindingKind::OutOfBounds);
    }
}

#[test]
fn a_use_after_free_is_told_from_a_wild_access() {
    let program = Program::parse(&module("", "ld.global.u32 %r1, [%rd0];")).unwrap();
    let memory = Memory::new();
    let old = memory.alloc("old", 64).unwrap();
    memory.fill(old, 64, 0).unwrap();
    memory.free(old).unwrap();
    let params = old.0.to_le_bytes();
    let work = Launch {
        entry: "k",
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        params: &params,
    };
    let report = launch(&program, &memory, &work, &Options::default()).unwrap();
    assert_eq!(report.findings[0].kind, FindingKind::UseAfterFree);
    assert_eq!(report.findings[0].allocation.as_deref(), Some("old"));
}

#[test]
fn misaligned_accesses_are_found_in_every_space() {
    let body = |at: u32| {
        format!(
            "{INDEX} st.global.v2.u32 [%rd0+{at}], {{%r0, %r0}}; mov.u64 %rd4, sh; st.shared.u64 [%rd4+{at}], 1;"
        )
    };
    let found = faulty_and_correct(SHARED, &body(4), &body(8), 1, FindingKind::Misaligned);
    assert_eq!(found.report.findings.len(), 1, "both are on one line");
    assert_eq!(found.report.findings[0].occurrences, 2);
}

#[test]
fn uninitialised_bytes_are_found_one_by_one() {
    // Byte 8192 of `data` is the first unwritten one.
    let global = |at: u32| format!("ld.global.u8 %r1, [%rd0+{at}];");
    let found = faulty_and_correct(
        "",
        &global(8192),
        &global(8191),
        1,
        FindingKind::UninitialisedMemory,
    );
    assert_eq!(found.only().allocation.as_deref(), Some("data"));
    let wide = |at: u32| format!("ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd0+{at}];");
    faulty_and_correct(
        "",
        &wide(8192),
        &wide(8176),
        1,
        FindingKind::UninitialisedMemory,
    );
    let stored = |at: u32| format!("st.global.u16 [%rd0+9000], 1; ld.global.u8 %r1, [%rd0+{at}];");
    faulty_and_correct(
        "",
        &stored(9002),
        &stored(9001),
        1,
        FindingKind::UninitialisedMemory,
    );

    let shared =
        |at: u32| format!("{INDEX} st.shared.u32 [%rd3], 5; ld.shared.u32 %r1, [%rd3+{at}];");
    faulty_and_correct(
        SHARED,
        &shared(4),
        &shared(0),
        1,
        FindingKind::UninitialisedMemory,
    );
    let bytes =
        |at: u32| format!("{INDEX} st.shared.u8 [%rd3+4], 5; ld.shared.u8 %r1, [%rd3+{at}];");
    faulty_and_correct(
        SHARED,
        &bytes(5),
        &bytes(4),
        1,
        FindingKind::UninitialisedMemory,
    );
    let local = |at: u32| format!("st.local.u32 [lo], 5; ld.local.u32 %r1, [lo+{at}];");
    faulty_and_correct(
        ".local .align 8 .b8 lo[16];",
        &local(4),
        &local(0),
        1,
        FindingKind::UninitialisedMemory,
    );
    let copied = |at: u32| format!("{INDEX} cp.async.ca.shared.global [%rd3], [%rd0+{at}], 4;");
    faulty_and_correct(
        SHARED,
        &copied(8192),
        &copied(0),
        1,
        FindingKind::UninitialisedMemory,
    );
}

#[test]
fn registers_unwritten_on_the_path_taken_are_found() {
    let body = |limit: u32| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, {limit}; @%p1 bra SET; bra USE;
             SET: mov.u32 %r1, 7;
             USE: add.u32 %r2, %r1, 1; mad.wide.u32 %rd1, %r0, 4, %rd0; st.global.u32 [%rd1], %r2;"
        )
    };
    let found = faulty_and_correct(
        "",
        &body(31),
        &body(32),
        32,
        FindingKind::UninitialisedRegister,
    );
    assert_eq!(found.only().lane, 31);
    // Guarded writes count for the lanes whose guard holds.
    let guarded = |limit: u32| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, {limit}; @%p1 mov.u32 %r1, 7; add.u32 %r2, %r1, 1;"
        )
    };
    faulty_and_correct(
        "",
        &guarded(5),
        &guarded(32),
        32,
        FindingKind::UninitialisedRegister,
    );
    // A copy of an unwritten register is no use of it.
    let outcome = run(&module("", "mov.u32 %r2, %r1; mov.u32 %r3, %r2;"), 32, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    let outcome = run(
        &module("", "mov.u32 %r2, %r1; add.u32 %r3, %r2, 1;"),
        32,
        &[],
    );
    assert_eq!(outcome.kinds(), [FindingKind::UninitialisedRegister]);
}

#[test]
fn a_missing_block_barrier_is_a_race() {
    let body = |barrier: &str| {
        format!(
            "{INDEX} st.shared.u32 [%rd3], %r0; {barrier} xor.b32 %r1, %r0, 32; mul.wide.u32 %rd4, %r1, 4;
             add.s64 %rd5, %rd2, %rd4; ld.shared.u32 %r2, [%rd5];"
        )
    };
    let found = faulty_and_correct(
        SHARED,
        &body("bar.warp.sync -1;"),
        &body("bar.sync 0;"),
        64,
        FindingKind::SharedRace,
    );
    assert!(
        found.report.findings[0]
            .message
            .contains("is not ordered after the read by warp 0")
    );
    // A barrier object of its own does as well, and one that counts the threads.
    for barrier in [
        "barrier.sync 3;",
        "bar.sync 1, 64;",
        "barrier.sync.aligned 0;",
    ] {
        assert!(
            run(&module(SHARED, &body(barrier)), 64, &[1; 8192])
                .report
                .is_clean(),
            "{barrier}"
        );
    }
}

#[test]
fn a_missing_warp_barrier_is_a_race() {
    let body = |barrier: &str| {
        format!(
            "{INDEX} st.shared.u32 [%rd3], %r0; {barrier} xor.b32 %r1, %r0, 1; mul.wide.u32 %rd4, %r1, 4;
             add.s64 %rd5, %rd2, %rd4; ld.shared.u32 %r2, [%rd5];"
        )
    };
    // A shuffle keeps the lanes together but orders no memory.
    let faulty = body("shfl.sync.bfly.b32 %r5, %r0, 1, 31, -1;");
    faulty_and_correct(
        SHARED,
        &faulty,
        &body("bar.warp.sync -1;"),
        32,
        FindingKind::SharedRace,
    );
}

#[test]
fn a_write_after_an_unordered_read_is_a_race() {
    let body = |barrier: &str| {
        format!(
            "{INDEX} st.shared.u32 [%rd3], %r0; bar.sync 0; xor.b32 %r1, %r0, 33; mul.wide.u32 %rd4, %r1, 4;
             add.s64 %rd5, %rd2, %rd4; ld.shared.u32 %r2, [%rd5]; {barrier}
             st.shared.u32 [%rd3], %r2;"
        )
    };
    let found = faulty_and_correct(
        SHARED,
        &body(""),
        &body("bar.sync 0;"),
        64,
        FindingKind::SharedRace,
    );
    assert!(
        found
            .report
            .findings
            .iter()
            .any(|finding| finding.message.contains("after the read by warp"))
    );
}

#[test]
fn neighbouring_halves_of_a_word_do_not_race() {
    let body = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 2; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
        cvt.u16.u32 %h1, %r0; st.shared.u16 [%rd3], %h1; bar.sync 0; ld.shared.u16 %h2, [%rd3];";
    let outcome = run(&module(SHARED, body), 64, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
}

/// 16 bytes a lane from `data` to shared memory, twice the same buffer.
fn copies(wait: &str, after: &str, again: &str) -> String {
    format!(
        "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
         add.s64 %rd4, %rd0, %rd1; xor.b32 %r1, %r0, 1; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd6, %rd2, %rd5;
         cp.async.cg.shared.global [%rd3], [%rd4], 16; cp.async.commit_group;
         {wait}
         {after}
         ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd6];
         {again}
         cp.async.cg.shared.global [%rd3], [%rd4], 16; cp.async.commit_group; cp.async.wait_all;"
    )
}

#[test]
fn data_of_a_copy_that_was_not_waited_for_is_in_flight() {
    let correct = copies(
        "cp.async.wait_group 0;",
        "bar.warp.sync -1;",
        "bar.warp.sync -1;",
    );
    for wait in ["", "cp.async.wait_group 1;"] {
        let faulty = copies(
            wait,
            "bar.warp.sync -1;",
            "cp.async.wait_all; bar.warp.sync -1;",
        );
        faulty_and_correct(SHARED, &faulty, &correct, 32, FindingKind::InFlightCopy);
    }
}

#[test]
fn a_wait_without_a_barrier_orders_only_its_own_thread() {
    let correct = copies(
        "cp.async.wait_group 0;",
        "bar.warp.sync -1;",
        "bar.warp.sync -1;",
    );
    let faulty = copies("cp.async.wait_group 0;", "", "bar.warp.sync -1;");
    let found = faulty_and_correct(SHARED, &faulty, &correct, 32, FindingKind::SharedRace);
    assert_eq!(found.only().ptx_line, 14);
}

#[test]
fn refilling_a_buffer_without_a_barrier_is_a_race_although_the_result_is_right() {
    let correct = copies(
        "cp.async.wait_group 0;",
        "bar.warp.sync -1;",
        "bar.warp.sync -1;",
    );
    let faulty = copies("cp.async.wait_group 0;", "bar.warp.sync -1;", "");
    let found = faulty_and_correct(SHARED, &faulty, &correct, 32, FindingKind::SharedRace);
    assert!(
        found.only().message.contains("cp.async write"),
        "{}",
        found.only().message
    );
    assert_eq!(found.only().occurrences, 32);
}

#[test]
fn one_buffer_ring_needs_the_right_group_to_land() {
    // Two groups are open; waiting for all but one covers the first only.
    let body = |read: u32| {
        format!(
            "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
             add.s64 %rd4, %rd0, %rd1;
             cp.async.cg.shared.global [%rd3], [%rd4], 16; cp.async.commit_group;
             cp.async.cg.shared.global [%rd3+1024], [%rd4+1024], 16; cp.async.commit_group;
             cp.async.wait_group 1; bar.warp.sync -1; ld.shared.u32 %r1, [%rd3+{read}]; cp.async.wait_all;"
        )
    };
    faulty_and_correct(SHARED, &body(1024), &body(0), 32, FindingKind::InFlightCopy);
}

#[test]
fn a_short_copy_fills_with_zero_and_reads_no_more_than_it_says() {
    // The address of an empty copy points nowhere.
    let body = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
        and.b32 %r1, %r0, 1; mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; selp.u32 %r2, 6, 0, %p1;
        selp.b64 %rd4, %rd0, 12345, %p1;
        cp.async.cg.shared.global [%rd3], [%rd4], 16, %r2; cp.async.wait_all;
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%rd3]; add.s64 %rd5, %rd0, %rd1;
        st.global.v4.u32 [%rd5], {%r4, %r5, %r6, %r7};";
    let outcome = run(&module(SHARED, body), 32, &[0xAB; 6]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
    assert_eq!(outcome.words(32, 4), [0xABAB_ABAB, 0xABAB, 0, 0]);
    assert_eq!(outcome.words(16, 4), [0; 4]);
}

#[test]
fn matrix_loads_need_all_lanes_to_be_done() {
    let body = |barrier: &str| {
        format!(
            "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 16; mov.u64 %rd2, sh; add.s64 %rd3, %rd2, %rd1;
             st.shared.v4.u32 [%rd3], {{%r0, %r0, %r0, %r0}}; {barrier}
             ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%rd3];"
        )
    };
    faulty_and_correct(
        SHARED,
        &body(""),
        &body("bar.warp.sync -1;"),
        32,
        FindingKind::SharedRace,
    );
}

#[test]
fn producers_and_consumers_may_meet_at_named_barriers() {
    // Warp 0 waits for barrier 1, where warp 1 only arrives.
    let body = |arrive: &str| {
        format!(
            "{INDEX} setp.lt.u32 %p1, %r0, 32; @%p1 bra CONSUME;
             st.shared.u32 [%rd3], %r0; {arrive} bra END;
             CONSUME: bar.sync 1, 64; ld.shared.u32 %r1, [%rd3+128];
             END: "
        )
    };
    let clean = run(&module(SHARED, &body("bar.arrive 1, 64;")), 64, &[]);
    assert!(clean.report.is_clean(), "{:#?}", clean.report.findings);
    let late = INDEX.to_owned()
        + "setp.lt.u32 %p1, %r0, 32; @%p1 bra CONSUME; bar.arrive 1, 64; st.shared.u32 [%rd3], %r0; bra END;
           CONSUME: bar.sync 1, 64; ld.shared.u32 %r1, [%rd3+128]; END: ";
    let found = run(&module(SHARED, &late), 64, &[]);
    assert_eq!(found.kinds(), [FindingKind::SharedRace]);
}

#[test]
fn a_barrier_in_a_diverged_warp_is_found() {
    let body = |limit: u32| {
        format!(
            "mov.u32 %r0, %tid.x; setp.ge.u32 %p1, %r0, {limit}; @%p1 bra SKIP; bar.sync 0; SKIP: mov.u32 %r1, 1; bar.sync 0;"
        )
    };
    faulty_and_correct("", &body(16), &body(0), 64, FindingKind::DivergentBarrier);
}

#[test]
fn warps_that_wait_at_different_barriers_are_a_deadlock() {
    let body = |other: u32| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32; @%p1 bra ONE; bar.sync {other}; bra END;
             ONE: bar.sync 1; END: "
        )
    };
    let found = faulty_and_correct("", &body(2), &body(1), 64, FindingKind::Deadlock);
    assert_eq!(found.report.findings[0].occurrences, 1);
    assert!(
        found.report.findings[0]
            .message
            .contains("32 threads wait here"),
        "{}",
        found.report.findings[0].message
    );
}

#[test]
fn threads_that_left_are_not_waited_for() {
    let body = "mov.u32 %r0, %tid.x; setp.ge.u32 %p1, %r0, 48; @%p1 bra END; bar.sync 0; END: ";
    let outcome = run(&module("", body), 64, &[]);
    assert!(outcome.report.is_clean(), "{:#?}", outcome.report.findings);
}

#[test]
fn members_that_never_come_are_found() {
    let body = |mask: &str| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @!%p1 bra HIGH;
             LOW: shfl.sync.bfly.b32 %r1, %r0, 1, 31, {mask}; bra END;
             HIGH: bar.sync 0; bra OUT; END: bar.sync 0; OUT: "
        )
    };
    let outcome = run(&module("", &body("-1")), 32, &[]);
    assert!(
        outcome.kinds().contains(&FindingKind::InactiveLane),
        "{:?}",
        outcome.kinds()
    );
    let outcome = run(&module("", &body("0xffff")), 32, &[]);
    assert!(
        !outcome.kinds().contains(&FindingKind::InactiveLane),
        "{:?}",
        outcome.kinds()
    );
}

#[test]
fn a_shuffle_from_a_lane_that_is_elsewhere_is_found() {
    let body = |from: u32| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @!%p1 bra END;
             shfl.sync.idx.b32 %r1, %r0, {from}, 31, 0xffff; END: "
        )
    };
    faulty_and_correct("", &body(20), &body(3), 32, FindingKind::InactiveLane);
}

#[test]
fn an_endless_loop_is_stopped() {
    let ptx = module("", "LOOP: bra LOOP;");
    let options = Options {
        instruction_limit: 10_000,
        threads: Some(1),
        ..Options::default()
    };
    let outcome = run_with(&ptx, 32, &[], &options);
    assert_eq!(outcome.kinds(), [FindingKind::InstructionLimit]);
    assert!(outcome.report.counts.warp_instructions <= 10_001);
}

#[test]
fn a_trap_ends_the_block_and_is_told() {
    let outcome = run(&module("", "trap;"), 64, &[]);
    assert_eq!(outcome.kinds(), [FindingKind::Trap]);
}

#[test]
fn each_check_has_a_switch() {
    let body = format!(
        "{INDEX} ld.global.u32 %r1, [%rd0+2000000]; ld.global.u32 %r1, [%rd0+2]; ld.global.u32 %r1, [%rd0+9000];
         st.shared.u32 [sh], %r0; setp.lt.u32 %p1, %r0, 16; @%p1 bar.sync 0; bar.sync 0;"
    );
    let ptx = module(SHARED, &body);
    let with = |checks: Checks| {
        let options = Options {
            checks,
            threads: Some(1),
            ..Options::default()
        };
        let mut kinds = run_with(&ptx, 32, &[1; 8192], &options).kinds();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    assert_eq!(with(Checks::none()), []);
    let only = |set: fn(&mut Checks)| {
        let mut checks = Checks::none();
        set(&mut checks);
        with(checks)
    };
    assert_eq!(only(|c| c.bounds = true), [FindingKind::OutOfBounds]);
    assert_eq!(only(|c| c.alignment = true), [FindingKind::Misaligned]);
    assert_eq!(
        only(|c| c.uninitialised = true),
        [FindingKind::UninitialisedMemory]
    );
    assert_eq!(only(|c| c.races = true), [FindingKind::SharedRace]);
    assert_eq!(
        only(|c| c.convergence = true),
        [FindingKind::DivergentBarrier]
    );
    assert_eq!(with(Checks::all()).len(), 5);
}

#[test]
fn findings_are_bounded_and_counted() {
    let mut body = String::new();
    for at in 0..20 {
        body += &format!("ld.global.u32 %r1, [%rd0+{}];\n", 2_000_000 + 4 * at);
    }
    let options = Options {
        finding_limit: 5,
        threads: Some(1),
        ..Options::default()
    };
    let outcome = run_with(&module("", &body), 32, &[], &options);
    assert_eq!(outcome.report.findings.len(), 5);
    assert_eq!(outcome.report.findings_dropped, 15 * 32);
    assert!(
        outcome
            .report
            .findings
            .iter()
            .all(|finding| finding.occurrences == 32)
    );
}

#[test]
fn a_warp_that_straddles_two_allocations_is_judged_lane_by_lane() {
    // Lanes below 16 read the allocation, the others what `elsewhere` says.
    let body = |elsewhere: &str| {
        format!(
            "mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0; {elsewhere}
             setp.lt.u32 %p1, %r0, 16; selp.b64 %rd3, %rd1, %rd2, %p1;
             ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd1], %r1;"
        )
    };
    let own = body("add.s64 %rd2, %rd0, 4096;");
    for elsewhere in ["mov.u64 %rd2, 0;", "mov.u64 %rd2, -4;"] {
        faulty_and_correct("", &body(elsewhere), &own, 32, FindingKind::OutOfBounds);
    }
}

#[test]
fn addresses_from_one_end_of_memory_to_the_other_are_out_of_bounds_and_no_panic() {
    let body = |base: &str| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; {base}
             ld.global.u8 %r1, [%rd3];"
        )
    };
    let ends = body("mov.u64 %rd1, 0; mov.u64 %rd2, -1; selp.b64 %rd3, %rd1, %rd2, %p1;");
    faulty_and_correct(
        "",
        &ends,
        &body("mov.u64 %rd3, %rd0;"),
        32,
        FindingKind::OutOfBounds,
    );
}

#[test]
fn a_guard_that_leaves_lanes_out_of_an_aligned_instruction_is_found() {
    let body = |guard: &str| {
        format!(
            "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; mov.b32 %f0, 0f00000000; mov.u32 %r1, 0; mov.u32 %r2, %r0;
             {guard} mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1,%f2,%f3,%f4}}, {{%r1,%r1,%r1,%r1}}, {{%r1,%r1}}, {{%f0,%f0,%f0,%f0}};
             {guard} movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;"
        )
    };
    faulty_and_correct("", &body("@%p1"), &body(""), 32, FindingKind::InactiveLane);
}

#[test]
fn an_underscore_is_no_source() {
    for body in [
        "add.s32 %r1, _, %r0;",
        "setp.eq.s32 %p1, %r0, 0; selp.b32 %r1, 1, 2, _;",
        "vote.sync.ballot.b32 %r1, _, -1;",
        "add.s64 %rd1, %rd0, _;",
    ] {
        let error = Program::parse(&module("", body)).unwrap_err();
        assert!(error.to_string().contains("line"), "{body}: {error}");
    }
    assert!(
        Program::parse(&module(
            "",
            "mov.u64 %rd1, %rd0; ld.global.v2.u32 {%r1, _}, [%rd1];"
        ))
        .is_ok()
    );
}

#[test]
fn a_generic_address_before_a_shared_variable_is_no_panic() {
    let body = "mov.u32 %r0, 1; st.u32 [sh+-8], %r0;";
    if let Ok(program) = Program::parse(&module(SHARED, body)) {
        drop(program);
        assert!(!run(&module(SHARED, body), 32, &[1; 64]).report.is_clean());
    }
}

#[test]
fn a_text_that_asks_for_more_than_a_gpu_has_is_refused() {
    let local = ".local .align 16 .b8 big[4194304];";
    let error = Program::parse(&module(local, "")).unwrap_err().to_string();
    assert!(error.contains("local memory of a thread"), "{error}");
}

//! Small kernels run over one warp.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "helpers shared by several test binaries"
)]

use pagesmith_emulator::{
    Address, Finding, FindingKind, Launch, Memory, Options, Program, Report, launch,
};

/// A module with one entry `k` that takes a pointer.
pub fn module(declarations: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n{declarations}\n\
         .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<32>; .reg .b64 %rd<32>; .reg .f64 %fd<16>;\n\
         ld.param.u64 %rd0, [data];\n{body}\nret;\n}}\n"
    )
}

/// What a run of [`module`] left behind.
pub struct Outcome {
    pub report: Report,
    pub memory: Memory,
    pub data: Address,
}

impl Outcome {
    pub fn words(&self, from: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.memory
            .read(self.data.offset(from), &mut bytes)
            .unwrap();
        bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }

    pub fn kinds(&self) -> Vec<FindingKind> {
        self.report
            .findings
            .iter()
            .map(|finding| finding.kind)
            .collect()
    }

    /// The one finding there is.
    pub fn only(&self) -> &Finding {
        assert_eq!(self.report.findings.len(), 1, "{:#?}", self.report.findings);
        &self.report.findings[0]
    }
}

/// Runs `k` on `threads` threads over an allocation `data` that starts as `initial` (1 MiB, the rest unwritten).
pub fn run_with(ptx: &str, threads: u32, initial: &[u8], options: &Options) -> Outcome {
    let program = Program::parse(ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}"));
    let memory = Memory::new();
    let data = memory.alloc("data", 1 << 20).unwrap();
    memory.write(data, initial).unwrap();
    let work = Launch {
        entry: "k",
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        params: &data.0.to_le_bytes(),
    };
    let report = launch(&program, &memory, &work, options).unwrap();
    Outcome {
        report,
        memory,
        data,
    }
}

/// Runs with every check.
pub fn run(ptx: &str, threads: u32, initial: &[u8]) -> Outcome {
    run_with(
        ptx,
        threads,
        initial,
        &Options {
            threads: Some(1),
            ..Options::default()
        },
    )
}

/// Runs `body` over 32 lanes with `%rd1, %rd2, %rd3` (and their low words `%r1, %r2, %r3`, the same bits as `%f1` to `%f3`
/// and `%h1` to `%h3`) taken from `inputs`, and gives `%rd9`, `%r9` widened, or both together as the body wrote them.
pub fn lanes(body: &str, inputs: &[[u64; 3]]) -> Vec<u64> {
    let fast = lanes_with(body, inputs, false);
    assert_eq!(
        fast,
        lanes_with(body, inputs, true),
        "portable code differs: {body}"
    );
    fast
}

fn lanes_with(body: &str, inputs: &[[u64; 3]], portable: bool) -> Vec<u64> {
    let ptx = module(
        "",
        &format!(
            "mov.u32 %r0, %tid.x; mad.wide.u32 %rd10, %r0, 24, %rd0;
             ld.global.u64 %rd1, [%rd10]; ld.global.u64 %rd2, [%rd10+8]; ld.global.u64 %rd3, [%rd10+16];
             cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3;
             mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;
             cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3;
             mov.b64 %fd1, %rd1; mov.b64 %fd2, %rd2; mov.b64 %fd3, %rd3;
             mov.u64 %rd9, 0; mov.u32 %r9, 0; mov.f32 %f9, 0f00000000; mov.u16 %h9, 0;
             {body}
             mad.wide.u32 %rd11, %r0, 8, %rd0;
             mov.b32 %r10, %f9; cvt.u32.u16 %r11, %h9; or.b32 %r12, %r9, %r10; or.b32 %r12, %r12, %r11;
             cvt.u64.u32 %rd12, %r12; or.b64 %rd12, %rd12, %rd9;
             st.global.u64 [%rd11+4096], %rd12;"
        ),
    );
    let mut initial = Vec::new();
    for lane in 0..32 {
        for value in inputs[lane % inputs.len()] {
            initial.extend(value.to_le_bytes());
        }
    }
    let outcome = run_with(
        &ptx,
        32,
        &initial,
        &Options {
            threads: Some(1),
            portable,
            ..Options::default()
        },
    );
    assert!(
        outcome.report.is_clean(),
        "{body}: {:#?}",
        outcome.report.findings
    );
    let words = outcome.words(4096, 64);
    let all: Vec<u64> = words
        .chunks(2)
        .map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32)
        .collect();
    all[..inputs.len().min(32)].to_vec()
}

/// Bits of an f32 as an input.
pub fn f(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// A signed value as a 32-bit input.
pub fn s(value: i32) -> u64 {
    u64::from(value as u32)
}

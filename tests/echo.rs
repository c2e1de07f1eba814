//! The launch ABI, through the real compiler: each struct is sent to a kernel that copies it out field by field and by
//! name. Bytes that come back elsewhere mean that host and kernel disagree on where a field lies.

use pagesmith::device::{Buffer, Device, Emulated, LaunchConfig};
use pagesmith::spec::abi::{DecodeParams, MergeItem, MergeParams, WorkItem};
use pagesmith::spec::{Arch, Gpu};
use pagesmith_codegen::{Compiler, Provisioning, Search, provision, render_echo};
use pagesmith_emulator::Program;

type Failure = Box<dyn std::error::Error>;

/// What the kernel of `entry` makes of `sent`, the bytes of its struct.
fn echoed(
    device: &Emulated,
    module: &Program,
    entry: &str,
    sent: &[u8],
) -> Result<Vec<u8>, Failure> {
    let stream = device.stream();
    let out = device.alloc("out", sent.len() as u64)?;
    device.fill(out.region(), 0xEE, &stream)?;
    let mut params = sent.to_vec();
    params.resize(sent.len().next_multiple_of(8), 0);
    params.extend(out.region().start().0.to_le_bytes());
    let one = LaunchConfig {
        ctas: 1,
        threads: 1,
        shared_bytes: 0,
    };
    // SAFETY: the kernel takes this struct and a pointer, and writes as many bytes as the struct has.
    unsafe { device.launch(module, entry, one, &params, &stream) }?;
    let mut back = vec![0; sent.len()];
    device.download(out.region(), &mut back, &stream)?;
    Ok(back)
}

#[test]
fn every_field_of_every_abi_struct_arrives_where_it_was_sent() -> Result<(), Failure> {
    let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {})?;
    let compiler = Compiler::new(toolchain)?;
    let image = compiler.compile(&render_echo()?, Arch::SM_80)?.image;
    let device = Emulated::new(Gpu::by_name("a100-sxm4-80gb")?);
    let module = device.load(&image)?;
    for (entry, bytes) in [
        ("pagesmith_echo_decode", size_of::<DecodeParams>()),
        ("pagesmith_echo_merge", size_of::<MergeParams>()),
        ("pagesmith_echo_work_item", size_of::<WorkItem>()),
        ("pagesmith_echo_merge_item", size_of::<MergeItem>()),
    ] {
        let sent: Vec<u8> = (1..=bytes).map(|byte| byte as u8).collect();
        assert_eq!(echoed(&device, &module, entry, &sent)?, sent, "{entry}");
    }
    Ok(())
}

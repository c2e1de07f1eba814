//! The launch ABI, through the real compiler: each struct is sent to a kernel that copies it out field by field and by
//! name. Bytes that come back elsewhere mean that host and kernel disagree on where a field lies.

use pagesmith::device::{Buffer, Device, Emulated, LaunchConfig};
use pagesmith::spec::abi::{DecodeParams, KernelParams, MergeItem, MergeParams, WorkItem};
use pagesmith::spec::{Arch, Gpu};
use pagesmith_codegen::{Compiler, Provisioning, Search, provision, render_echo};

/// What the kernel of `entry` makes of `sent`, the bytes of a `Params`.
fn echoed<Params: KernelParams>(entry: &str, sent: &[u8]) -> Vec<u8> {
    let toolchain = provision(&Search::from_env(), Provisioning::Allowed, &mut |_| {}).unwrap();
    let compiler = Compiler::new(toolchain).unwrap();
    let source = render_echo().unwrap();
    let image = compiler.compile(&source, Arch::SM_80).unwrap().image;

    let device = Emulated::new(Gpu::by_name("a100-sxm4-80gb").unwrap());
    let module = device.load(&image).unwrap();
    let out = device.alloc("out", sent.len() as u64).unwrap();
    device.fill(out.region(), 0xEE, &device.stream()).unwrap();
    let mut params = sent.to_vec();
    params.resize(sent.len().next_multiple_of(8), 0);
    params.extend(out.region().start().0.to_le_bytes());
    let one = LaunchConfig {
        ctas: 1,
        threads: 1,
        shared_bytes: 0,
    };
    // SAFETY: the kernel takes this struct and a pointer, and writes as many bytes as the struct has.
    unsafe { device.launch(&module, entry, one, &params, &device.stream()) }.unwrap();
    let mut back = vec![0; sent.len()];
    device
        .download(out.region(), &mut back, &device.stream())
        .unwrap();
    back
}

fn check<Params: KernelParams>(entry: &str) {
    let sent: Vec<u8> = (1..=size_of::<Params>()).map(|byte| byte as u8).collect();
    assert_eq!(echoed::<Params>(entry, &sent), sent, "{}", Params::NAME);
}

#[test]
fn every_field_of_every_abi_struct_arrives_where_it_was_sent() {
    check::<DecodeParams>("pagesmith_echo_decode");
    check::<MergeParams>("pagesmith_echo_merge");
    check::<WorkItem>("pagesmith_echo_work_item");
    check::<MergeItem>("pagesmith_echo_merge_item");
}

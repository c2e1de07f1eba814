//! What a launch passes to a kernel, declared once: `kernel_params!` makes the Rust struct and the
//! CUDA text from the same tokens, and the CUDA text asserts the size and every offset.

mod decode;
mod params;

pub use decode::{DecodeParams, MergeItem, MergeParams, NO_SLOT, WorkItem};
pub(crate) use params::kernel_params;
pub use params::{DevicePtr, Field, KernelParams, ParamType};

use crate::ContentHash;

/// The name under which kernels include the generated declarations.
pub const HEADER_NAME: &str = "pagesmith/abi.cuh";

/// The CUDA declarations of every ABI struct, as one header.
///
/// ```
/// let header = pagesmith_spec::abi::header();
/// assert!(header.contains("struct DecodeParams"));
/// ```
pub fn header() -> String {
    let structs = [
        WorkItem::cuda(),
        MergeItem::cuda(),
        DecodeParams::cuda(),
        MergeParams::cuda(),
    ];
    format!(
        "#line 1 \"/pagesmith/abi.cuh\"\n// Generated from the Rust declarations; do not edit.\n#pragma once\n\n{}",
        structs.join("\n")
    )
}

/// Identifies the ABI an image was compiled against. An image whose hash differs from the runtime's
/// is refused at load: its kernels would read the wrong bytes.
pub fn hash() -> ContentHash {
    ContentHash::of("pagesmith-abi-1", &[header().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_asserts_the_offset_of_every_field() {
        let header = header();
        for field in DecodeParams::FIELDS {
            let assertion = format!(
                "static_assert(__INTADDR__(&((DecodeParams*)0)->{}) == {},",
                field.name, field.offset
            );
            assert!(header.contains(&assertion), "{assertion}\n{header}");
        }
        assert!(header.contains("static_assert(sizeof(WorkItem) == 32,"));
        assert!(header.contains("static_assert(sizeof(MergeItem) == 16,"));
    }

    #[test]
    fn fields_lie_one_after_the_other_without_padding() {
        for (fields, size) in [
            (DecodeParams::FIELDS, size_of::<DecodeParams>()),
            (MergeParams::FIELDS, size_of::<MergeParams>()),
        ] {
            let mut end = 0;
            for field in fields {
                assert_eq!(field.offset, end, "{}", field.name);
                end += field.size;
            }
            assert_eq!(end, size);
        }
    }
}

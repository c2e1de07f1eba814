//! A CUDA source that is ready to compile.

use crate::nvrtc::OPTIONS;
use pagesmith_spec::{Arch, ContentHash};
use std::sync::Arc;

/// A header, as the source includes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name between the quotes of `#include`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A rendered source with the headers it includes: all that a compile reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it: the absolute path in its own `#line`.
    pub name: String,
    /// CUDA C++.
    pub text: String,
    /// The headers it includes, directly or not; sources of one template set share their texts.
    pub headers: Vec<Arc<Header>>,
    /// The kernels it defines.
    pub entries: Vec<String>,
    /// The variant that it was rendered from ([`Variant::hash`](pagesmith_spec::Variant::hash)), if it was:
    /// its image is then that variant's and no other's.
    pub variant: Option<ContentHash>,
}

impl Source {
    /// Identifies what a compile of this source for `arch` depends on, the compiler itself excepted:
    /// every text and option. [`ImageHeader::source`](pagesmith_spec::image::ImageHeader) holds it, so that
    /// a cached image is recognised without compiling.
    pub fn hash(&self, arch: Arch) -> ContentHash {
        let arch = arch.to_string();
        let mut fields: Vec<&[u8]> =
            vec![arch.as_bytes(), self.name.as_bytes(), self.text.as_bytes()];
        for header in &self.headers {
            fields.extend([header.name.as_bytes(), header.text.as_bytes()]);
        }
        fields.extend(OPTIONS.iter().map(|option| option.as_bytes()));
        ContentHash::of("pagesmith-source-1", &fields)
    }
}

/// The file and line that `#line 12 "file"` gives the next line.
pub(crate) fn line_directive(line: &str) -> Option<(String, u32)> {
    let rest = line.trim_start().strip_prefix("#line ")?;
    let (number, file) = rest.trim().split_once(' ')?;
    let file = file.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((file.to_owned(), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Arc<Header> {
        Arc::new(Header {
            name: "h.cuh".into(),
            text: text.into(),
        })
    }

    fn source() -> Source {
        Source {
            name: "/pagesmith/a.cu".into(),
            text: "ab".into(),
            headers: vec![header("c")],
            entries: vec![],
            variant: None,
        }
    }

    #[test]
    fn every_text_and_the_arch_change_the_hash() {
        let hash = source().hash(Arch::SM_80);
        let mut other = source();
        other.text = "a".into();
        assert_ne!(other.hash(Arch::SM_80), hash);
        let mut other = source();
        other.headers = vec![header("d")];
        assert_ne!(other.hash(Arch::SM_80), hash);
        assert_ne!(source().hash(Arch::SM_90), hash);
        assert_eq!(source().hash(Arch::SM_80), hash);
    }
}

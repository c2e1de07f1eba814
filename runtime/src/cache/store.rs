//! Files that appear whole or not at all.

use super::{CacheError, ProblemKind};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The longest image that is read; those of the decode family have about 100 KB.
pub(super) const MAX_IMAGE_BYTES: u64 = 64 << 20;

/// What makes backup tools skip the directory (bford.info/cachedir).
const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55\n\
    # This directory is a kernel cache of pagesmith. It can be filled again with `autotune run`.\n";

/// Makes the root, for its owner alone, and tags it.
pub(super) fn create_root(root: &Path) -> Result<(), CacheError> {
    create_directory(root)?;
    let tag = root.join("CACHEDIR.TAG");
    // A cache made by another version, or shipped, may be read-only here and still be written below.
    match tag.exists() {
        true => Ok(()),
        false => write(&tag, TAG),
    }
}

/// Makes a directory and its parents; new ones are their owner's alone.
pub(super) fn create_directory(path: &Path) -> Result<(), CacheError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| CacheError::Io {
        action: "create the directory",
        path: path.to_owned(),
        source,
        fix: "choose a directory that you may write with --cache or PAGESMITH_CACHE",
    })
}

/// Whether files can be made in a directory.
pub(super) fn probe(directory: &Path) -> Result<(), CacheError> {
    match tempfile::NamedTempFile::new_in(directory) {
        Ok(_) => Ok(()),
        Err(source) => Err(unwritable(directory, source)),
    }
}

/// Writes a file in one step: readers see the old one, the new one, or none.
///
/// Not synced to the disk: what a power cut tears is found by its hash and tuned again.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), CacheError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    create_directory(directory)?;
    let failed = |source| unwritable(path, source);
    // Random names, tried until one is new: containers that share the directory may share pids too.
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// What the names of unfinished files begin with.
const TEMPORARY: &str = ".writing-";

fn unwritable(path: &Path, source: io::Error) -> CacheError {
    CacheError::Io {
        action: "write",
        path: path.to_owned(),
        source,
        fix: "make it writable, or choose another directory with --cache or PAGESMITH_CACHE",
    }
}

/// A whole file of at most `limit` bytes; `None` when there is none.
pub(super) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ProblemKind> {
    let unreadable = |error: io::Error| ProblemKind::Unreadable(error.to_string());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    // The length that the file system tells is not trusted either: the file may grow meanwhile.
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match bytes.len() as u64 > limit {
        true => Err(ProblemKind::TooLong { limit }),
        false => Ok(Some(bytes)),
    }
}

/// What is in a directory, in order of name and without unfinished files; nothing when it is missing.
pub(super) fn list(directory: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let failed = |source| CacheError::Io {
        action: "read",
        path: directory.to_owned(),
        source,
        fix: "make it readable, or choose another directory with --cache or PAGESMITH_CACHE",
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

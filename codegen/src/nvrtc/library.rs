//! The functions of libnvrtc, and the only unsafe code of this crate.
//!
//! They are taken from the file that the search chose. cudarc's own lookup goes by bare name, so that a
//! `libnvrtc.so` on the loader's path would win over the chosen file, and it panics where there is none.

use super::place::{Toolchain, Version};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// A toolchain that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The loader refused one of the files.
    #[error(
        "could not load {}: {reason}; reinstall that NVRTC, or set PAGESMITH_NVRTC to another one",
        path.display()
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// The library answers with another release than its files are named after.
    #[error(
        "{} is NVRTC {found} beside builtins of {expected}; reinstall that NVRTC, or set PAGESMITH_NVRTC \
         to another one",
        path.display()
    )]
    Mismatched {
        /// The compiler's file.
        path: PathBuf,
        /// The release of its builtins.
        expected: Version,
        /// The release it says it is.
        found: Version,
    },
}

/// An NVRTC result that is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(c_int);

impl Status {
    /// The source does not compile: the log says why.
    pub(super) const COMPILATION: Status = Status(6);
    /// A length that does not fit the interface.
    const INVALID_INPUT: Status = Status(3);
}

type Handle = *mut c_void;
type Strings = *const *const c_char;

/// Every function that is used, with the signatures of `nvrtc.h` (the same from 12.0 to 13.x). Results
/// are plain integers: an enum would be undefined behaviour for a code that a later release adds.
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        Strings,
        Strings,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, Strings) -> c_int,
    log: Artifact,
    ptx: Artifact,
    cubin: Artifact,
}

/// A pair of functions that give the size of a result, and the result.
struct Artifact {
    size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
    get: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
}

/// A loaded NVRTC. Its functions may be called from several threads at once, each with its own program
/// (NVRTC documentation, "Thread safety").
pub(super) struct Nvrtc {
    functions: Functions,
    // Never unloaded: NVRTC leaves thread-local destructors and exit handlers behind that would then
    // point nowhere.
    _builtins: ManuallyDrop<Library>,
    _library: ManuallyDrop<Library>,
}

impl Nvrtc {
    pub(super) fn load(toolchain: &Toolchain) -> Result<Self, LoadError> {
        // The wheel's libnvrtc looks for its builtins by bare name and has no RUNPATH: unless they are in
        // the process already, every compile fails with "builtin operation failure".
        let builtins = open(&toolchain.builtins)?;
        let library = open(&toolchain.library)?;
        let functions = Functions::of(&library).map_err(|error| LoadError::Refused {
            path: toolchain.library.clone(),
            reason: error.to_string(),
        })?;
        let nvrtc = Nvrtc {
            functions,
            _builtins: builtins,
            _library: library,
        };
        let found = nvrtc.version();
        if found != toolchain.version {
            return Err(LoadError::Mismatched {
                path: toolchain.library.clone(),
                expected: toolchain.version,
                found,
            });
        }
        Ok(nvrtc)
    }

    fn version(&self) -> Version {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: nvrtcVersion writes one int through each of two valid pointers.
        unsafe { (self.functions.version)(&mut major, &mut minor) };
        Version {
            major: u32::try_from(major).unwrap_or(0),
            minor: u32::try_from(minor).unwrap_or(0),
        }
    }

    /// NVRTC's name of a result.
    pub(super) fn describe(&self, status: Status) -> String {
        // SAFETY: nvrtcGetErrorString accepts any integer and returns a static string, or null.
        let text = unsafe {
            let text = (self.functions.error_string)(status.0);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        };
        match text {
            Some(text) => format!("{} ({})", text.to_string_lossy(), status.0),
            None => format!("NVRTC error {}", status.0),
        }
    }
}

fn check(result: c_int) -> Result<(), Status> {
    match result {
        0 => Ok(()),
        code => Err(Status(code)),
    }
}

fn open(path: &Path) -> Result<ManuallyDrop<Library>, LoadError> {
    // SAFETY: the initialisers of NVIDIA's libraries run. The path is absolute and was chosen by the
    // user or found where NVRTC is installed; nothing more can be known about a shared library.
    unsafe { Library::new(path) }
        .map(ManuallyDrop::new)
        .map_err(|error| LoadError::Refused {
            path: path.to_owned(),
            reason: error.to_string(),
        })
}

impl Functions {
    fn of(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: each field's type is the signature that nvrtc.h declares for that symbol, and the
        // pointers stay valid because the library is never unloaded.
        unsafe {
            Ok(Functions {
                version: *library.get("nvrtcVersion")?,
                error_string: *library.get("nvrtcGetErrorString")?,
                create: *library.get("nvrtcCreateProgram")?,
                destroy: *library.get("nvrtcDestroyProgram")?,
                compile: *library.get("nvrtcCompileProgram")?,
                log: Artifact {
                    size: *library.get("nvrtcGetProgramLogSize")?,
                    get: *library.get("nvrtcGetProgramLog")?,
                },
                ptx: Artifact {
                    size: *library.get("nvrtcGetPTXSize")?,
                    get: *library.get("nvrtcGetPTX")?,
                },
                cubin: Artifact {
                    size: *library.get("nvrtcGetCUBINSize")?,
                    get: *library.get("nvrtcGetCUBIN")?,
                },
            })
        }
    }
}

/// The strings of a program. NVRTC does not promise to copy them before it is done.
pub(super) struct Texts {
    /// What messages call the source.
    pub(super) name: CString,
    /// The source.
    pub(super) text: CString,
    /// Names and texts of the headers.
    pub(super) headers: Vec<(CString, CString)>,
}

/// One source on its way through the compiler.
pub(super) struct Program<'nvrtc> {
    nvrtc: &'nvrtc Nvrtc,
    handle: Handle,
    _texts: Texts,
}

impl<'nvrtc> Program<'nvrtc> {
    pub(super) fn new(nvrtc: &'nvrtc Nvrtc, texts: Texts) -> Result<Self, Status> {
        let headers = &texts.headers;
        let names: Vec<*const c_char> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let bodies: Vec<*const c_char> = headers.iter().map(|(_, body)| body.as_ptr()).collect();
        let count = c_int::try_from(headers.len()).map_err(|_| Status::INVALID_INPUT)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: all strings are NUL-terminated and live as long as the program, which owns them (moving a
        // CString leaves its bytes in place); both arrays hold `count` pointers; `handle` is a valid place.
        let result = unsafe {
            (nvrtc.functions.create)(
                &mut handle,
                texts.text.as_ptr(),
                texts.name.as_ptr(),
                count,
                bodies.as_ptr(),
                names.as_ptr(),
            )
        };
        check(result)?;
        Ok(Program {
            nvrtc,
            handle,
            _texts: texts,
        })
    }

    pub(super) fn compile(&self, options: &[CString]) -> Result<(), Status> {
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| Status::INVALID_INPUT)?;
        // SAFETY: the handle is a live program, used by this thread only (`Program` is not `Sync`), and
        // `pointers` holds `count` NUL-terminated strings.
        check(unsafe { (self.nvrtc.functions.compile)(self.handle, count, pointers.as_ptr()) })
    }

    pub(super) fn log(&self) -> Result<String, Status> {
        let bytes = self.artifact(&self.nvrtc.functions.log)?;
        Ok(text_of(bytes))
    }

    pub(super) fn ptx(&self) -> Result<String, Status> {
        let bytes = self.artifact(&self.nvrtc.functions.ptx)?;
        Ok(text_of(bytes))
    }

    pub(super) fn cubin(&self) -> Result<Vec<u8>, Status> {
        self.artifact(&self.nvrtc.functions.cubin)
    }

    fn artifact(&self, of: &Artifact) -> Result<Vec<u8>, Status> {
        let mut size = 0;
        // SAFETY: the handle is a live program and `size` a valid place for the answer.
        check(unsafe { (of.size)(self.handle, &mut size) })?;
        let mut bytes = vec![0u8; size];
        // SAFETY: NVRTC writes exactly the number of bytes it has just named.
        check(unsafe { (of.get)(self.handle, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is a live program that nothing uses after this. Its result could only say that
        // the handle is invalid.
        unsafe { (self.nvrtc.functions.destroy)(&mut self.handle) };
    }
}

/// Text from NVRTC: up to its terminating NUL, and whatever is not UTF-8 in it replaced.
fn text_of(mut bytes: Vec<u8>) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    bytes.truncate(end);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

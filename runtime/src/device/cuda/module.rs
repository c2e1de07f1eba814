//! A loaded CUBIN.

use super::super::LoadError;
use super::reason;
use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as OPT_IN;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::{CudaContext, DriverError, result, sys};
use pagesmith_spec::Image;
use std::ffi::CString;
use std::sync::Arc;

/// The kernels of an image; unloaded when dropped.
#[derive(Debug)]
pub struct CudaModule {
    context: Arc<CudaContext>,
    module: sys::CUmodule,
    functions: Vec<(String, sys::CUfunction)>,
}

// SAFETY: handles of the driver, which may be used from every thread that has made the context
// current; each use does.
unsafe impl Send for CudaModule {}
// SAFETY: as above; nothing is changed after loading.
unsafe impl Sync for CudaModule {}

impl CudaModule {
    pub(super) fn load(context: &Arc<CudaContext>, image: &Image) -> Result<Self, LoadError> {
        let cubin = |error: DriverError| LoadError::Cubin(reason(error));
        check_elf(&image.cubin)?;
        context.bind_to_thread().map_err(cubin)?;
        // SAFETY: `cubin` is an ELF whose headers lie inside it (just checked) and whose contents
        // hash to what was written; the driver copies it.
        let module =
            unsafe { result::module::load_data(image.cubin.as_ptr().cast()) }.map_err(cubin)?;
        let mut loaded = CudaModule {
            context: Arc::clone(context),
            module,
            functions: Vec::with_capacity(image.header.entries.len()),
        };
        for entry in &image.header.entries {
            let name = CString::new(entry.name.as_str())
                .map_err(|error| LoadError::Cubin(error.to_string()))?;
            // SAFETY: the module is loaded.
            let function = unsafe { result::module::get_function(module, name) }.map_err(cubin)?;
            loaded.allow_shared_memory(function).map_err(cubin)?;
            loaded.functions.push((entry.name.clone(), function));
        }
        Ok(loaded)
    }

    /// Lets launches take more than the 48 KB of dynamic shared memory that every GPU has.
    fn allow_shared_memory(&self, function: sys::CUfunction) -> Result<(), DriverError> {
        let limit = self.context.attribute(OPT_IN)?;
        // SAFETY: the function is of this module, which is loaded.
        unsafe {
            let fixed = result::function::get_function_attribute(
                function,
                Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            )?;
            result::function::set_function_attribute(
                function,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                limit - fixed,
            )
        }
    }

    /// The kernel of that name. The images of this project have two.
    pub(super) fn function(&self, name: &str) -> Option<sys::CUfunction> {
        self.functions
            .iter()
            .find(|(known, _)| known == name)
            .map(|&(_, function)| function)
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        // A kernel of the module may still run.
        self.context.record_err(self.context.synchronize());
        // SAFETY: loaded by `load`, unloaded here alone.
        self.context
            .record_err(unsafe { result::module::unload(self.module) });
    }
}

/// `cuModuleLoadData` takes no length: it trusts the ELF's own offsets. Those of the section and
/// program tables must lie inside the bytes there are.
fn check_elf(cubin: &[u8]) -> Result<(), LoadError> {
    const HEADER: usize = 64;
    let wrong = |what: &str| LoadError::Cubin(format!("the CUBIN is not an ELF: {what}"));
    let header = cubin
        .first_chunk::<HEADER>()
        .ok_or_else(|| wrong("shorter than its header"))?;
    // 64-bit, little-endian.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Err(wrong("no 64-bit little-endian magic"));
    }
    let u64_at = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    // e_phoff, e_phentsize, e_phnum; e_shoff, e_shentsize, e_shnum.
    let program = (u64_at(32), u16_at(54), u16_at(56), 56);
    let section = (u64_at(40), u16_at(58), u16_at(60), 64);
    for (offset, size, count, expected) in [program, section] {
        if count > 0 && size != expected {
            return Err(wrong("entries of an unknown size"));
        }
        let end = offset.checked_add(size * count);
        if end.is_none_or(|end| end > cubin.len() as u64) {
            return Err(wrong("a table beyond the end"));
        }
    }
    let (offset, size, count, _) = section;
    for index in 0..count {
        // Inside `cubin`: the table is.
        let at = (offset + index * size) as usize;
        let field = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&cubin[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let kind = u32::from_le_bytes([cubin[at + 4], cubin[at + 5], cubin[at + 6], cubin[at + 7]]);
        // SHT_NOBITS (8) takes no bytes of the file, nor does CUDA's own SHT_CUDA_NOBITS form of
        // `.nv.shared`, which has the same type.
        let end = field(at + 24).checked_add(field(at + 32));
        if kind != 8 && end.is_none_or(|end| end > cubin.len() as u64) {
            return Err(wrong("a section beyond the end"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF with one section of `length` bytes at offset 128.
    fn elf(length: u64) -> Vec<u8> {
        let mut bytes = vec![0; 192];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&1u16.to_le_bytes());
        bytes[64 + 4] = 1;
        bytes[64 + 24..64 + 32].copy_from_slice(&128u64.to_le_bytes());
        bytes[64 + 32..64 + 40].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    #[test]
    fn an_elf_whose_offsets_leave_it_never_reaches_the_driver() {
        assert_eq!(check_elf(&elf(64)), Ok(()));
        assert!(check_elf(&elf(65)).is_err());
        assert!(check_elf(&elf(u64::MAX)).is_err());
        for end in 0..192 {
            assert!(check_elf(&elf(64)[..end]).is_err(), "cut at {end}");
        }
        let mut far = elf(64);
        far[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(check_elf(&far).is_err());
    }
}

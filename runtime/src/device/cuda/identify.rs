//! Which of the GPUs that pagesmith knows a device is.

use super::{DeviceError, failed};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use pagesmith_spec::Gpu;
use pagesmith_spec::gpu::Bytes;

/// What the driver tells of a device.
#[derive(Clone, Debug)]
struct Found {
    ordinal: usize,
    name: String,
    sms: u32,
    memory: Bytes,
    capability: (u32, u32),
}

pub(super) fn identify(context: &CudaContext) -> Result<Gpu, DeviceError> {
    let call = "cuDeviceGetAttribute";
    let number = |attribute| {
        context
            .attribute(attribute)
            .map(|value| u32::try_from(value).unwrap_or(0))
            .map_err(|error| failed(call, error))
    };
    let memory = context
        .total_mem()
        .map_err(|error| failed("cuDeviceTotalMem", error))?;
    matching(Found {
        ordinal: context.ordinal(),
        name: context
            .name()
            .map_err(|error| failed("cuDeviceGetName", error))?,
        sms: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory: Bytes(memory as u64),
        capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
    })
}

/// The GPU of that name, unless its numbers are another's: a MIG slice has the name of the whole.
fn matching(found: Found) -> Result<Gpu, DeviceError> {
    let Found {
        ordinal,
        name,
        sms,
        memory,
        capability: (major, minor),
    } = found;
    let gpu = match Gpu::by_device_name(&name) {
        Ok(gpu) => gpu,
        Err(source) => {
            return Err(DeviceError::UnknownGpu {
                ordinal,
                name,
                source,
            });
        }
    };
    let other = |field, found, expected| {
        Err(DeviceError::OtherEdition {
            ordinal,
            name: name.clone(),
            gpu: gpu.name.clone(),
            field,
            found,
            expected,
        })
    };
    if sms != gpu.sms {
        return other("sms", u64::from(sms), u64::from(gpu.sms));
    }
    let expected = gpu.arch.major() * 10 + gpu.arch.minor();
    if major * 10 + minor != expected {
        return other(
            "compute capability ×10",
            u64::from(major * 10 + minor),
            u64::from(expected),
        );
    }
    // Data sheets round, in powers of ten or of two, and the driver keeps a part: a quarter tells a
    // 40 GB edition and any MIG slice from the whole.
    if memory.0.abs_diff(gpu.memory.bytes.0) > gpu.memory.bytes.0 / 4 {
        return other("memory bytes", memory.0, gpu.memory.bytes.0);
    }
    Ok(gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a100() -> Found {
        Found {
            ordinal: 0,
            name: String::from("NVIDIA A100-SXM4-80GB"),
            sms: 108,
            memory: Bytes(85_097_971_712),
            capability: (8, 0),
        }
    }

    #[test]
    fn devices_are_told_by_what_the_driver_calls_them() {
        assert_eq!(matching(a100()).expect("known").name, "a100-sxm4-80gb");
        let h200 = Found {
            name: String::from("NVIDIA H200"),
            sms: 132,
            memory: Bytes(150_000_000_000),
            capability: (9, 0),
            ..a100()
        };
        assert_eq!(matching(h200).expect("known").name, "h200");
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let found = Found {
            name: String::from("NVIDIA GeForce RTX 4090"),
            ..a100()
        };
        let error = matching(found).unwrap_err().to_string();
        assert!(
            error.contains("RTX 4090") && error.contains("a100-sxm4-80gb"),
            "{error}"
        );
    }

    #[test]
    fn a_part_of_a_gpu_is_not_taken_for_the_whole() {
        let slices = [
            Found { sms: 42, ..a100() },
            Found {
                memory: Bytes(40 << 30),
                ..a100()
            },
            Found {
                capability: (9, 0),
                ..a100()
            },
        ];
        for slice in slices {
            let error = matching(slice).unwrap_err();
            assert!(matches!(error, DeviceError::OtherEdition { .. }), "{error}");
        }
    }
}

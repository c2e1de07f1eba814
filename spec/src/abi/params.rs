//! The mechanism: field types, the trait of a parameter struct, and the macro that declares one.

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An address in a device's memory.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoBytes,
    FromBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// No memory: kernels do not read through a null pointer of a feature that is off.
    pub const NULL: DevicePtr = DevicePtr(0);

    /// The address `bytes` further on, or `None` past the end of the address space.
    pub fn offset(self, bytes: u64) -> Option<DevicePtr> {
        self.0.checked_add(bytes).map(DevicePtr)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that may stand in a parameter struct: its size and alignment agree between Rust and CUDA.
pub trait ParamType: sealed::Sealed + Copy {
    /// The CUDA spelling.
    const CUDA: &'static str;
}

macro_rules! param_types {
    ($($ty:ty => $cuda:literal),* $(,)?) => {
        $(
            impl sealed::Sealed for $ty {}
            impl ParamType for $ty {
                const CUDA: &'static str = $cuda;
            }
        )*
    };
}

param_types! {
    DevicePtr => "unsigned long long",
    i64 => "long long",
    u32 => "unsigned int",
    f32 => "float",
}

/// One field of a parameter struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, the same in Rust and CUDA.
    pub name: &'static str,
    /// Its CUDA type.
    pub cuda: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Bytes it takes.
    pub size: usize,
}

/// A struct that kernels receive or read, declared by `kernel_params!`.
pub trait KernelParams: IntoBytes + FromBytes + Immutable + KnownLayout + Copy {
    /// The struct's name, the same in Rust and CUDA.
    const NAME: &'static str;
    /// Its fields in order.
    const FIELDS: &'static [Field];

    /// The CUDA declaration with its size and offset assertions.
    ///
    /// `offsetof` needs a header that NVRTC does not have; `__INTADDR__` is its constant-expression
    /// form.
    fn cuda() -> String {
        let name = Self::NAME;
        let mut text = format!("struct {name} {{\n");
        for field in Self::FIELDS {
            text += &format!("    {} {};\n", field.cuda, field.name);
        }
        text += "};\n";
        let size = size_of::<Self>();
        text += &format!("static_assert(sizeof({name}) == {size}, \"{name}: size\");\n");
        for Field {
            name: field,
            offset,
            ..
        } in Self::FIELDS
        {
            text += &format!(
                "static_assert(__INTADDR__(&(({name}*)0)->{field}) == {offset}, \"{name}.{field}: offset\");\n"
            );
        }
        text
    }
}

/// Declares a parameter struct: `repr(C)`, every field type allow-listed by [`ParamType`], padding
/// refused by `IntoBytes`, and the CUDA declaration made from the same tokens.
macro_rules! kernel_params {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident: $ty:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, zerocopy::IntoBytes, zerocopy::FromBytes,
            zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub struct $Name {
            $( $(#[$field_meta])* pub $field: $ty, )*
        }

        impl $crate::abi::KernelParams for $Name {
            const NAME: &'static str = stringify!($Name);
            const FIELDS: &'static [$crate::abi::Field] = &[
                $( $crate::abi::Field {
                    name: stringify!($field),
                    cuda: <$ty as $crate::abi::ParamType>::CUDA,
                    offset: std::mem::offset_of!($Name, $field),
                    size: size_of::<$ty>(),
                }, )*
            ];
        }
    };
}
pub(crate) use kernel_params;

//! Tensors as kernels see them: memory, a shape, strides; checked once, when they are made.

use crate::device::Region;
use pagesmith_spec::layout::KvStrides;
use pagesmith_spec::{KvDtype, QueryDtype};

/// Kernels copy and store 16 bytes at a time.
const ALIGNMENT: u64 = 16;

/// Memory that a tensor can lie in.
pub trait TensorMemory {
    /// Its first address; only its alignment is looked at.
    fn address(&self) -> u64;
    /// Its length in bytes.
    fn bytes(&self) -> u64;
}

impl TensorMemory for Region<'_> {
    fn address(&self) -> u64 {
        self.start().0
    }

    fn bytes(&self) -> u64 {
        Region::bytes(*self)
    }
}

/// A tensor that a kernel could not use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tensor}: {field} = {value} {reason}; {fix}")]
pub struct TensorError {
    /// The kind of tensor.
    pub tensor: &'static str,
    /// What is wrong.
    pub field: &'static str,
    /// What it is.
    pub value: i128,
    /// Why that cannot be.
    pub reason: String,
    /// What to do.
    pub fix: &'static str,
}

/// Queries or outputs: `[tokens, heads, D]`, the head dim contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<M> {
    memory: M,
    dtype: QueryDtype,
    shape: [u32; 3],
    token_stride: i64,
    head_stride: i64,
}

impl<M: TensorMemory> Rows<M> {
    /// Contiguous `[tokens, heads, head_dim]` at the start of `memory`.
    ///
    /// # Errors
    /// When it does not fit or is not aligned.
    pub fn contiguous(memory: M, dtype: QueryDtype, shape: [u32; 3]) -> Result<Self, TensorError> {
        let head = i64::from(shape[2]);
        Self::strided(memory, dtype, shape, i64::from(shape[1]) * head, head)
    }

    /// `[tokens, heads, head_dim]` with the given strides in elements.
    ///
    /// # Errors
    /// When a row is not 16-byte aligned, rows overlap, or the last one leaves the memory.
    pub fn strided(
        memory: M,
        dtype: QueryDtype,
        shape: [u32; 3],
        token_stride: i64,
        head_stride: i64,
    ) -> Result<Self, TensorError> {
        let extent = Extent {
            tensor: "rows",
            element: dtype.bytes(),
            row: shape[2],
            axes: [
                Axis::new("token_stride", shape[0], token_stride),
                Axis::new("head_stride", shape[1], head_stride),
            ],
        };
        extent.check(&memory)?;
        extent.check_disjoint()?;
        Ok(Rows {
            memory,
            dtype,
            shape,
            token_stride,
            head_stride,
        })
    }
}

impl<M> Rows<M> {
    /// The memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Element type.
    pub const fn dtype(&self) -> QueryDtype {
        self.dtype
    }

    /// `[tokens, heads, head_dim]`.
    pub const fn shape(&self) -> [u32; 3] {
        self.shape
    }

    /// Elements from one token to the next.
    pub const fn token_stride(&self) -> i64 {
        self.token_stride
    }

    /// Elements from one head to the next.
    pub const fn head_stride(&self) -> i64 {
        self.head_stride
    }
}

/// The keys or the values of a paged cache: `[blocks, block_size, heads, D]` under free strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvCache<M> {
    memory: M,
    dtype: KvDtype,
    shape: [u32; 4],
    strides: KvStrides,
}

impl<M: TensorMemory> KvCache<M> {
    /// `[blocks, block_size, heads, head_dim]` with the given strides in elements.
    ///
    /// A cache may be larger than 2³¹ elements: kernels compute block offsets in 64 bits.
    ///
    /// # Errors
    /// When a row is not 16-byte aligned, the last one leaves the memory, or one block spans 4 GiB.
    pub fn new(
        memory: M,
        dtype: KvDtype,
        shape: [u32; 4],
        strides: KvStrides,
    ) -> Result<Self, TensorError> {
        let [blocks, block_size, heads, head_dim] = shape;
        Extent {
            tensor: "kv cache",
            element: dtype.bytes(),
            row: head_dim,
            axes: [
                Axis::new("strides.block", blocks, strides.block),
                Axis::new("strides.token", block_size, strides.token),
                Axis::new("strides.head", heads, strides.head),
            ],
        }
        .check(&memory)?;
        let span = i128::from(strides.token) * i128::from(block_size) * i128::from(dtype.bytes());
        if span >= 1 << 32 {
            return Err(TensorError {
                tensor: "kv cache",
                field: "strides.token",
                value: i128::from(strides.token),
                reason: format!(
                    "spreads one block over {span} bytes, kernels take offsets below 4 GiB inside a block"
                ),
                fix: "put the tokens of a block closer together",
            });
        }
        Ok(KvCache {
            memory,
            dtype,
            shape,
            strides,
        })
    }
}

impl<M> KvCache<M> {
    /// The memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Element type.
    pub const fn dtype(&self) -> KvDtype {
        self.dtype
    }

    /// `[blocks, block_size, heads, head_dim]`.
    pub const fn shape(&self) -> [u32; 4] {
        self.shape
    }

    /// Strides in elements.
    pub const fn strides(&self) -> KvStrides {
        self.strides
    }
}

/// Log-sum-exp: f32 `[tokens, heads]`, contiguous, natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LseRows<M> {
    memory: M,
    shape: [u32; 2],
}

impl<M: TensorMemory> LseRows<M> {
    /// `[tokens, heads]` at the start of `memory`.
    ///
    /// # Errors
    /// When it does not fit or is not aligned.
    pub fn new(memory: M, shape: [u32; 2]) -> Result<Self, TensorError> {
        let elements = u64::from(shape[0]) * u64::from(shape[1]);
        check_memory(&memory, "lse", u128::from(elements) * 4)?;
        Ok(LseRows { memory, shape })
    }
}

impl<M> LseRows<M> {
    /// The memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// `[tokens, heads]`.
    pub const fn shape(&self) -> [u32; 2] {
        self.shape
    }
}

struct Axis {
    field: &'static str,
    length: u32,
    stride: i64,
}

impl Axis {
    fn new(field: &'static str, length: u32, stride: i64) -> Self {
        Axis {
            field,
            length,
            stride,
        }
    }
}

/// Rows of `row` elements along some axes.
struct Extent<const AXES: usize> {
    tensor: &'static str,
    element: u32,
    row: u32,
    axes: [Axis; AXES],
}

impl<const AXES: usize> Extent<AXES> {
    fn check(&self, memory: &impl TensorMemory) -> Result<(), TensorError> {
        let element = i128::from(self.element);
        for axis in &self.axes {
            let wrong = |reason: &str, fix| TensorError {
                tensor: self.tensor,
                field: axis.field,
                value: i128::from(axis.stride),
                reason: reason.to_owned(),
                fix,
            };
            if axis.stride < 0 {
                return Err(wrong("is negative", "pass the tensor the other way round"));
            }
            if i128::from(axis.stride) * element % i128::from(ALIGNMENT) != 0 {
                return Err(wrong(
                    "elements are no multiple of 16 bytes",
                    "pad the rows to 16 bytes",
                ));
            }
        }
        let empty = self.axes.iter().any(|axis| axis.length == 0);
        let last: i128 = self
            .axes
            .iter()
            .map(|axis| i128::from(axis.length.saturating_sub(1)) * i128::from(axis.stride))
            .sum();
        let needed = match empty {
            true => 0,
            false => (last + i128::from(self.row)) * element,
        };
        // Three products of 32 and 63 bits: far from the ends of i128, and not negative.
        check_memory(memory, self.tensor, needed.unsigned_abs())
    }

    /// Whether no two rows overlap: CTAs store them in any order.
    fn check_disjoint(&self) -> Result<(), TensorError> {
        let mut axes = self.axes.each_ref();
        axes.sort_by_key(|axis| axis.stride);
        let mut inner = i128::from(self.row);
        for axis in axes.into_iter().filter(|axis| axis.length > 1) {
            let stride = i128::from(axis.stride);
            if stride < inner {
                return Err(TensorError {
                    tensor: self.tensor,
                    field: axis.field,
                    value: stride,
                    reason: format!("is below {inner}, so that rows overlap"),
                    fix: "pass strides in elements, not in rows",
                });
            }
            inner += stride * i128::from(axis.length - 1);
        }
        Ok(())
    }
}

fn check_memory(
    memory: &impl TensorMemory,
    tensor: &'static str,
    needed: u128,
) -> Result<(), TensorError> {
    if !memory.address().is_multiple_of(ALIGNMENT) {
        return Err(TensorError {
            tensor,
            field: "address",
            value: i128::from(memory.address()),
            reason: String::from("is no multiple of 16"),
            fix: "align the tensor",
        });
    }
    if needed > u128::from(memory.bytes()) {
        return Err(TensorError {
            tensor,
            field: "bytes",
            value: i128::from(memory.bytes()),
            reason: format!("hold no tensor of {needed} bytes"),
            fix: "pass the whole buffer, or correct shape and strides",
        });
    }
    Ok(())
}

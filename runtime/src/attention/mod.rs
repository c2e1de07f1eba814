//! What a server's layers call: attention over a paged KV cache.
//!
//! ```text
//!   AttentionBackend ──── Kernels<D: Device>   tuned images on a device
//!        │
//!        ├── plan_decode   once a step: work list and block table to the device
//!        └── decode        once a layer: query, cache and output tensors
//! ```
//!
//! Tensors are a piece of memory with a shape and strides ([`Rows`], [`KvCache`], [`LseRows`]); their
//! constructors refuse what a kernel could not read safely.

mod check;
mod decode;
mod error;
mod kernels;
mod step;
mod tensor;

pub use decode::{DecodeArgs, DecodeBatch, ResidentTable, Scales, TablePlace};
pub use error::{AttentionError, Family, Unsupported};
pub use kernels::{Choice, Kernels};
pub use step::DevicePlan;
pub use tensor::{KvCache, LseRows, Rows, TensorError, TensorMemory};

/// Attention over a paged KV cache, on tensors and streams of the backend's kind.
///
/// A backend implements the families it has; the others answer [`Unsupported`].
///
/// ```
/// use pagesmith_runtime::attention::{AttentionBackend, AttentionError, Family, Unsupported};
///
/// /// A backend that can do nothing yet.
/// struct Nothing;
///
/// impl AttentionBackend for Nothing {
///     type Tensor<'m> = &'m [u8];
///     type Stream = ();
///     type Plan = ();
///     type Error = AttentionError;
///
///     fn name(&self) -> &str {
///         "nothing"
///     }
/// }
///
/// let error: AttentionError = Unsupported::by(&Nothing, Family::Decode).into();
/// assert_eq!(error.to_string(), "attention: nothing has no decode; use a backend that has");
/// ```
pub trait AttentionBackend {
    /// Memory of a tensor.
    type Tensor<'m>;
    /// An ordered queue of work.
    type Stream;
    /// What [`AttentionBackend::plan_decode`] prepares and [`AttentionBackend::decode`] uses.
    type Plan;
    /// What can go wrong.
    type Error: std::error::Error + From<Unsupported>;

    /// The backend's name, for errors and logs.
    fn name(&self) -> &str;

    /// Prepares `plan` for a batch: once a step, for all layers. Its memory is reused.
    ///
    /// # Errors
    /// When the batch does not suit the spec, or the backend has no decode.
    fn plan_decode(
        &mut self,
        plan: &mut Self::Plan,
        batch: DecodeBatch<'_>,
        stream: &Self::Stream,
    ) -> Result<(), Self::Error> {
        let _ = (plan, batch, stream);
        Err(Unsupported::by(self, Family::Decode).into())
    }

    /// One query token per sequence attends to the sequence's KV tokens. A sequence without tokens
    /// gives output 0 and log-sum-exp -inf; a batch without sequences launches nothing.
    ///
    /// # Errors
    /// When a tensor does not suit the plan, or the backend has no decode. Nothing was launched then.
    fn decode(
        &mut self,
        plan: &mut Self::Plan,
        args: DecodeArgs<Self::Tensor<'_>>,
        stream: &Self::Stream,
    ) -> Result<(), Self::Error> {
        let _ = (plan, args, stream);
        Err(Unsupported::by(self, Family::Decode).into())
    }

    /// Many query tokens per sequence attend causally.
    ///
    /// # Errors
    /// When the backend has no prefill.
    fn prefill(&mut self, stream: &Self::Stream) -> Result<(), Self::Error> {
        let _ = stream;
        Err(Unsupported::by(self, Family::Prefill).into())
    }

    /// Drafted tokens attend along a tree.
    ///
    /// # Errors
    /// When the backend has no verify.
    fn verify(&mut self, stream: &Self::Stream) -> Result<(), Self::Error> {
        let _ = stream;
        Err(Unsupported::by(self, Family::Verify).into())
    }

    /// Sequences that share a prefix read it once.
    ///
    /// # Errors
    /// When the backend has no cascade.
    fn cascade(&mut self, stream: &Self::Stream) -> Result<(), Self::Error> {
        let _ = stream;
        Err(Unsupported::by(self, Family::Cascade).into())
    }

    /// New keys and values go to their slots of the cache.
    ///
    /// # Errors
    /// When the backend has no kv_write.
    fn kv_write(&mut self, stream: &Self::Stream) -> Result<(), Self::Error> {
        let _ = stream;
        Err(Unsupported::by(self, Family::KvWrite).into())
    }

    /// Blocks are copied inside the cache.
    ///
    /// # Errors
    /// When the backend has no copy.
    fn copy(&mut self, stream: &Self::Stream) -> Result<(), Self::Error> {
        let _ = stream;
        Err(Unsupported::by(self, Family::Copy).into())
    }
}

//! What a kernel takes on a GPU, from its counts, its machine code and the GPU's description.
//!
//! Three steps, none of which needs a GPU:
//!
//! ```text
//!  CUBIN ──► sass   instructions, guards, control words, basic blocks      (nvdisasm is the oracle)
//!            lines  which PTX line each instruction was made from          (nvdisasm -gp)
//!  emulated launch ──► LineCounts   how often each PTX line ran
//!                 ╲      │
//!                  ╲     ▼
//!            carry  counts of PTX lines ──► executions of SASS blocks ──► SassCounts by class
//!                                                                              │
//!  grid, traffic, resources ──► LaunchProfile ◄────────────────────────────────┘
//!  Gpu ──────────────────────────────┤
//!                                    ▼
//!            model  limits joined, CTAs scheduled ──► Prediction: seconds, and what bounds them
//! ```
//!
//! ```
//! use pagesmith_spec::Gpu;
//! use pagesmith_spec::gpu::{Bytes, Footprint};
//! use pagesmith_timing::sass::Class;
//! use pagesmith_timing::{LaunchProfile, predict};
//!
//! let kv = 4 * 4096 * 8 * 128 * 2 * 2; // Llama-3-8B, 4 sequences of 4,096 tokens
//! let decode = LaunchProfile {
//!     name: "decode".to_owned(),
//!     footprint: Footprint { registers: 128, shared_bytes: 66 * 1024, threads: 128 },
//!     cta_weights: vec![1.0; 216],
//!     // From `count_sass(cubin, "pagesmith_decode", &LineCounts::from_report(..))?.by_class`.
//!     instructions: [(Class::Fma, 700_000), (Class::Tensor, 131_072)].into_iter().collect(),
//!     dram_bytes: Bytes(kv),
//!     l2_bytes: Bytes(kv),
//!     shared_wavefronts: 2 * kv / 128,
//!     cta_bytes_in_flight: Bytes(48 * 1024),
//!     dependent_loads: 3,
//! };
//! let prediction = predict(&Gpu::by_name("a100-sxm4-80gb")?, &[decode])?;
//! assert_eq!(prediction.bound_by.to_string(), "dram");
//! assert_eq!(prediction.provenance().to_string(), "modelled (roofline-1)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the counts are worth
//!
//! Instructions that ptxas maps one to one (products, matrix loads, copies, barriers, shuffles,
//! loads and stores) come out exact, and [`SassCounts::imbalance`] says so for every kernel.
//! Integer instructions are counted through their blocks, whose executions follow from the lines
//! and from control flow. Where ptxas splits a loop into an unrolled part and several remainders,
//! the lines tell their sum only: the total may then be off by a few executions of a small block.
//! Slow paths for warps that lost lanes are taken to be never run. Calls to functions in sections
//! of their own are not followed.
//!
//! # What the model is worth
//!
//! [`MODEL_VERSION`] `roofline-1` has not been fitted to any measurement of these kernels. Rooflines of
//! its kind are off by about 20 % on average; use it to rank variants and to see what bounds
//! them, and a GPU to say how fast they are. It knows nothing of:
//!
//! - latency of dependent instructions inside a warp: a kernel with few warps that waits for its own
//!   arithmetic is predicted too fast, unless its bytes in flight say so;
//! - DRAM pages, channels and refresh beyond the bandwidth that reads reach, and TLB misses;
//! - reuse in L1 and L2: the caller says what crosses each interface;
//! - clocks below boost: power and heat are not modelled;
//! - overlap of one launch's tail with the next launch's start.
//!
//! A prediction carries its version wherever it goes and is never called measured.

pub mod carry;
mod error;
mod lines;
pub mod model;
pub mod sass;

pub use carry::{LineCounts, SassCounts, count_sass};
pub use error::TimingError;
pub use model::{Bound, LaunchProfile, MODEL_VERSION, Prediction, predict};

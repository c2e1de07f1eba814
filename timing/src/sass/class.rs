//! The kinds of instruction that a timing model tells apart.

use serde::{Deserialize, Serialize};

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What a SASS instruction occupies: one class is served by one pipe at one rate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Class {
            $($(#[$doc])* $name,)*
        }

        impl Class {
            /// Every class, in the order in which tables print them.
            pub const ALL: &[Class] = &[$(Class::$name,)*];

            /// The word that reports use.
            pub fn name(self) -> &'static str {
                match self { $(Class::$name => $text,)* }
            }
        }
    };
}

classes! {
    /// Integer and logic on the ALU: IADD3, LOP3, ISETP, LEA, SHF, PRMT, MOV, SEL, FMNMX, FSETP, F2FP.
    Integer = "integer",
    /// f32 and integer multiply-add: FFMA, FMUL, FADD, IMAD, HFMA2, HADD2, HMUL2.
    Fma = "fma",
    /// Packed half multiply-add that ptxas sends to the tensor side: HFMA2.MMA.
    HalfMma = "half_mma",
    /// f64.
    Double = "double",
    /// Matrix multiply: HMMA, IMMA, BMMA, DMMA and the warp-group forms.
    Tensor = "tensor",
    /// Special functions and conversions: MUFU, F2I, I2F, F2F, POPC, FLO.
    Special = "special",
    /// Matrix load from shared memory: LDSM.
    LoadMatrix = "load_matrix",
    /// LDS.
    LoadShared = "load_shared",
    /// STS and STSM.
    StoreShared = "store_shared",
    /// ATOMS.
    AtomicShared = "atomic_shared",
    /// LDG and generic LD.
    LoadGlobal = "load_global",
    /// STG and generic ST.
    StoreGlobal = "store_global",
    /// ATOM, ATOMG, RED.
    AtomicGlobal = "atomic_global",
    /// Global to shared memory without registers: LDGSTS.
    CopyAsync = "copy_async",
    /// LDGDEPBAR, which closes a group of copies.
    CopyCommit = "copy_commit",
    /// DEPBAR, which waits for groups or scoreboards.
    CopyWait = "copy_wait",
    /// LDL: a spill or a stack array.
    LoadLocal = "load_local",
    /// STL.
    StoreLocal = "store_local",
    /// LDC.
    LoadConstant = "load_constant",
    /// Textures and surfaces.
    Texture = "texture",
    /// BAR.
    Barrier = "barrier",
    /// SHFL, and the other exchanges between lanes that use its network: MATCH, REDUX.
    Shuffle = "shuffle",
    /// VOTE and VOTEU.
    Vote = "vote",
    /// MOVM.
    MoveMatrix = "move_matrix",
    /// The uniform datapath: one value a warp.
    Uniform = "uniform",
    /// BRA, CALL, EXIT, BSSY, BSYNC, WARPSYNC.
    Control = "control",
    /// Special registers and the like: S2R, CS2R.
    System = "system",
    /// MEMBAR, ERRBAR, CCTL.
    Fence = "fence",
    /// NOP.
    Nop = "nop",
    /// An opcode that the table does not know.
    Other = "other",
}

impl Class {
    /// Whether ptxas makes exactly one such instruction of one PTX instruction, so that the
    /// two sides can be counted against each other.
    pub fn is_one_to_one(self) -> bool {
        matches!(
            self,
            Class::Tensor
                | Class::LoadMatrix
                | Class::CopyAsync
                | Class::CopyCommit
                | Class::Barrier
                | Class::MoveMatrix
                | Class::Shuffle
                | Class::LoadGlobal
                | Class::StoreGlobal
                | Class::LoadShared
                | Class::StoreShared
                | Class::AtomicGlobal
                | Class::AtomicShared
        )
    }
}

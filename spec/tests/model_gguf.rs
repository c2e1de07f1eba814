//! GGUF headers: as written by llama.cpp, cut anywhere, and hostile.

use pagesmith_spec::model::{GgufError, ModelError, RopeScaling};
use pagesmith_spec::{ModelShape, QueryDtype};
use proptest::prelude::*;
use std::io::Read;

/// A value of a header, as the format types it.
#[derive(Clone)]
enum Entry {
    U32(u32),
    I32(i32),
    U64(u64),
    F32(f32),
    Bool(bool),
    Text(&'static str),
    Texts(Vec<String>),
    U32s(Vec<u32>),
    Bools(Vec<bool>),
    F32s(Vec<f32>),
    /// Type number and bytes as given.
    Raw(u32, Vec<u8>),
}

/// Writes headers, byte for byte as the format says.
#[derive(Clone)]
struct Header {
    magic: [u8; 4],
    version: u32,
    entries: Vec<(String, Entry)>,
}

impl Header {
    fn new(entries: &[(&str, Entry)]) -> Self {
        Header {
            magic: *b"GGUF",
            version: 3,
            entries: entries
                .iter()
                .map(|(key, entry)| ((*key).to_owned(), entry.clone()))
                .collect(),
        }
    }

    /// Sets an entry, in its place or at the end.
    fn set(mut self, key: &str, entry: Entry) -> Self {
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = entry,
            None => self.entries.push((key.to_owned(), entry)),
        }
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.entries.retain(|(known, _)| known != key);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(272_u64.to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        for (key, entry) in &self.entries {
            put_text(&mut bytes, key);
            put_entry(&mut bytes, entry);
        }
        bytes
    }

    fn read(&self) -> Result<ModelShape, ModelError> {
        ModelShape::from_gguf_header(&self.bytes())
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn put_list(bytes: &mut Vec<u8>, element: u32, length: usize) {
    bytes.extend(9_u32.to_le_bytes());
    bytes.extend(element.to_le_bytes());
    bytes.extend((length as u64).to_le_bytes());
}

fn put_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::U32(value) => {
            bytes.extend(4_u32.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        Entry::I32(value) => {
            bytes.extend(5_u32.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        Entry::F32(value) => {
            bytes.extend(6_u32.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        Entry::Bool(value) => {
            bytes.extend(7_u32.to_le_bytes());
            bytes.push((*value).into());
        }
        Entry::Text(text) => {
            bytes.extend(8_u32.to_le_bytes());
            put_text(bytes, text);
        }
        Entry::U64(value) => {
            bytes.extend(10_u32.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        Entry::Texts(texts) => {
            put_list(bytes, 8, texts.len());
            texts.iter().for_each(|text| put_text(bytes, text));
        }
        Entry::U32s(values) => {
            put_list(bytes, 4, values.len());
            values
                .iter()
                .for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        Entry::Bools(values) => {
            put_list(bytes, 7, values.len());
            bytes.extend(values.iter().map(|value| u8::from(*value)));
        }
        Entry::F32s(values) => {
            put_list(bytes, 6, values.len());
            values
                .iter()
                .for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        Entry::Raw(number, raw) => {
            bytes.extend(number.to_le_bytes());
            bytes.extend(raw);
        }
    }
}

/// The entries of SmolLM2-135M-Instruct.Q4_1.gguf, its lists shortened where only the length
/// matters.
fn smollm2() -> Header {
    let tokens: Vec<String> = (0..49152).map(|token| format!("t{token}")).collect();
    Header::new(&[
        ("general.architecture", Entry::Text("llama")),
        ("general.type", Entry::Text("model")),
        (
            "general.name",
            Entry::Text("Smollm2 135M 8k Lc100K Mix1 Ep2"),
        ),
        ("general.basename", Entry::Text("smollm2")),
        ("general.size_label", Entry::Text("135M")),
        ("general.languages", Entry::Texts(vec!["en".into()])),
        ("llama.block_count", Entry::U32(30)),
        ("llama.context_length", Entry::U32(8192)),
        ("llama.embedding_length", Entry::U32(576)),
        ("llama.feed_forward_length", Entry::U32(1536)),
        ("llama.attention.head_count", Entry::U32(9)),
        ("llama.attention.head_count_kv", Entry::U32(3)),
        ("llama.rope.freq_base", Entry::F32(100_000.0)),
        ("llama.attention.layer_norm_rms_epsilon", Entry::F32(1e-5)),
        ("general.file_type", Entry::U32(3)),
        ("llama.vocab_size", Entry::U32(49152)),
        ("llama.rope.dimension_count", Entry::U32(64)),
        ("tokenizer.ggml.model", Entry::Text("gpt2")),
        ("tokenizer.ggml.tokens", Entry::Texts(tokens)),
        ("tokenizer.ggml.scores", Entry::F32s(vec![0.0; 2000])),
        ("tokenizer.ggml.add_bos_token", Entry::Bool(false)),
        ("general.quantization_version", Entry::U32(2)),
    ])
}

/// The same with a short vocabulary, for tests that visit every byte.
fn small() -> Header {
    smollm2()
        .set(
            "tokenizer.ggml.tokens",
            Entry::Texts(vec!["a".into(), "bc".into()]),
        )
        .set("tokenizer.ggml.scores", Entry::F32s(vec![0.0; 2]))
}

fn gguf_error(result: Result<ModelShape, ModelError>) -> GgufError {
    match result {
        Err(ModelError::Gguf(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_header_of_smollm2_gives_its_shape() {
    let shape = smollm2().read().unwrap();
    let built_in = ModelShape::by_name("smollm2-135m").unwrap();
    assert_eq!(shape.name(), "Smollm2 135M 8k Lc100K Mix1 Ep2");
    // Q4_1 weights say nothing of a 16-bit dtype; everything else agrees.
    assert_eq!(shape.dtype(), None);
    assert_eq!(shape.fields().hidden_size, built_in.hidden_size());
    assert_eq!(shape.vocabulary(), built_in.vocabulary());
    assert_eq!(shape.rope(), built_in.rope());
    assert_eq!(
        (
            shape.layers(),
            shape.query_heads(),
            shape.kv_heads(),
            shape.head_dim()
        ),
        (30, 9, 3, 64)
    );
    assert_eq!(shape.max_context(), 8192);
}

/// Hands out a few bytes at a time, and fails the test when read far beyond `limit`.
struct Trickle<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = buffer.len().min(7).min(self.bytes.len());
        assert!(self.left >= step, "read too far beyond the header");
        self.left -= step;
        let (now, later) = self.bytes.split_at(step);
        buffer[..step].copy_from_slice(now);
        self.bytes = later;
        Ok(step)
    }
}

#[test]
fn a_reader_gives_the_same_shape_and_the_tensors_stay_unread() {
    let header = smollm2();
    let mut bytes = header.bytes();
    let length = bytes.len();
    bytes.extend(vec![0xAA; 8 << 20]);
    let trickle = Trickle {
        bytes: &bytes,
        left: length + (1 << 17),
    };
    assert_eq!(ModelShape::from_gguf_reader(trickle), header.read());
}

#[test]
fn the_order_of_the_entries_does_not_matter() {
    let mut reversed = smollm2();
    reversed.entries.reverse();
    assert_eq!(reversed.read(), smollm2().read());
}

#[test]
fn version_2_reads_like_version_3_and_no_other_does() {
    let version = |version| Header { version, ..small() }.read();
    assert_eq!(version(2), small().read());
    for refused in [0, 1, 4, 3_u32.swap_bytes()] {
        assert_eq!(
            gguf_error(version(refused)),
            GgufError::Version { version: refused }
        );
    }
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let other = Header {
        magic: *b"\x7fELF",
        ..small()
    };
    assert_eq!(
        gguf_error(other.read()),
        GgufError::Magic { found: *b"\x7fELF" }
    );
}

#[test]
fn a_header_cut_at_any_byte_is_refused_with_the_place() {
    let bytes = small().bytes();
    for end in 0..bytes.len() {
        match gguf_error(ModelShape::from_gguf_header(&bytes[..end])) {
            GgufError::Truncated { offset, reading } => {
                assert_eq!(offset, end as u64);
                assert!(!reading.is_empty());
            }
            other => panic!("cut at {end}: {other}"),
        }
    }
    assert!(ModelShape::from_gguf_header(&bytes).is_ok());
}

#[test]
fn a_header_changed_at_any_byte_gives_an_error_or_a_sound_shape() {
    let bytes = small().bytes();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            // Some changes are harmless, such as a letter of a name: then the shape must be sound.
            match ModelShape::from_gguf_header(&changed) {
                Ok(shape) => assert_eq!(shape.group() * shape.kv_heads(), shape.query_heads()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn hostile_counts_are_refused_where_they_stand() {
    let counts = |at: usize| {
        let mut bytes = small().bytes();
        bytes[at..at + 8].fill(0xFF);
        gguf_error(ModelShape::from_gguf_header(&bytes))
    };
    // The number of entries, and the length of the first key.
    assert!(matches!(
        counts(16),
        GgufError::TooLarge {
            offset: 16,
            value: u64::MAX,
            ..
        }
    ));
    assert!(matches!(
        counts(24),
        GgufError::TooLarge {
            offset: 24,
            value: u64::MAX,
            ..
        }
    ));

    let value = |raw: Vec<u8>, number| gguf_error(small().set("x", Entry::Raw(number, raw)).read());
    let list = |element: u32, length: u64| {
        [&element.to_le_bytes()[..], &length.to_le_bytes()[..]].concat()
    };
    for error in [
        // A text and lists of numbers that would fill the memory.
        value(u64::MAX.to_le_bytes().to_vec(), 8),
        value((1_u64 << 40).to_le_bytes().to_vec(), 8),
        value(list(0, u64::MAX), 9),
        value(list(10, u64::MAX / 8 + 1), 9),
        value(list(12, 1 << 40), 9),
    ] {
        assert!(matches!(error, GgufError::TooLarge { .. }), "{error}");
    }
    // Lists of texts and of lists end with the file.
    for element in [8, 9] {
        let error = value(list(element, u64::MAX), 9);
        assert!(matches!(error, GgufError::Truncated { .. }), "{error}");
    }
}

#[test]
fn lists_nested_without_end_are_refused() {
    let mut raw = Vec::new();
    for _ in 0..100_000 {
        raw.extend(9_u32.to_le_bytes());
        raw.extend(1_u64.to_le_bytes());
    }
    let error = gguf_error(small().set("x", Entry::Raw(9, raw)).read());
    assert!(
        matches!(error, GgufError::ValueType { value_type: 9, .. }),
        "{error}"
    );
}

#[test]
fn a_type_that_does_not_exist_is_refused_with_the_key() {
    for (number, raw) in [
        (13, vec![]),
        (u32::MAX, vec![]),
        (9, 77_u32.to_le_bytes().to_vec()),
    ] {
        let error = gguf_error(small().set("some.key", Entry::Raw(number, raw)).read());
        assert!(matches!(error, GgufError::ValueType { .. }), "{error}");
        assert!(error.to_string().contains("some.key"), "{error}");
    }
}

#[test]
fn a_name_that_is_no_text_is_refused() {
    let raw = [&2_u64.to_le_bytes()[..], &[0xC3, 0x28]].concat();
    let error = gguf_error(small().set("general.name", Entry::Raw(8, raw)).read());
    assert!(matches!(error, GgufError::Text { .. }), "{error}");
}

#[test]
fn an_entry_that_occurs_twice_is_refused() {
    let mut twice = small();
    twice
        .entries
        .push(("llama.block_count".into(), Entry::U32(31)));
    let error = gguf_error(twice.read());
    assert!(matches!(error, GgufError::Duplicate { .. }), "{error}");
}

#[test]
fn a_missing_entry_is_named() {
    for key in [
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.attention.head_count",
    ] {
        match small().without(key).read() {
            Err(ModelError::Missing { field, .. }) => assert_eq!(field, key),
            other => panic!("{key}: {other:?}"),
        }
    }
    let error = small()
        .without("llama.embedding_length")
        .read()
        .unwrap_err();
    assert!(
        error.to_string().contains("llama.attention.key_length"),
        "{error}"
    );
}

#[test]
fn an_entry_of_another_type_is_named() {
    for (key, entry) in [
        ("llama.block_count", Entry::Text("30")),
        ("llama.block_count", Entry::I32(-30)),
        ("llama.block_count", Entry::U64(1 << 32)),
        ("llama.attention.head_count_kv", Entry::F32s(vec![3.0; 30])),
        ("llama.attention.head_count", Entry::U32s(vec![9; 2000])),
        ("llama.rope.freq_base", Entry::Bool(true)),
        ("general.architecture", Entry::U32(1)),
        ("general.file_type", Entry::Text("F16")),
        ("llama.attention.sliding_window", Entry::F32(4096.0)),
    ] {
        match small().set(key, entry).read() {
            Err(ModelError::Type { field, .. }) => assert_eq!(field, key),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn head_counts_may_be_listed_by_layer_when_all_agree() {
    let key = "llama.attention.head_count_kv";
    let listed = small().set(key, Entry::U32s(vec![3; 30])).read();
    assert_eq!(listed, small().read());
    let absent = small().without(key).read().unwrap();
    assert_eq!((absent.kv_heads(), absent.group()), (9, 1));
    for mixed in [vec![3, 9, 3], vec![0, 3, 0]] {
        match small().set(key, Entry::U32s(mixed)).read() {
            Err(ModelError::Unsupported { field, .. }) => assert_eq!(field, key),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_key_length_wins_over_the_quotient_and_values_must_match_it() {
    let longer = small().set("llama.attention.key_length", Entry::U32(128));
    assert_eq!(longer.read().unwrap().head_dim(), 128);
    let value_key = "llama.attention.value_length";
    let same = longer.clone().set(value_key, Entry::U32(128));
    assert_eq!(same.read(), longer.read());
    match longer.set(value_key, Entry::U32(64)).read() {
        Err(ModelError::Unsupported { field, .. }) => assert_eq!(field, value_key),
        other => panic!("{other:?}"),
    }
}

/// A Gemma 2 header as llama.cpp writes it.
fn gemma2() -> Header {
    Header::new(&[
        ("general.architecture", Entry::Text("gemma2")),
        ("general.name", Entry::Text("gemma-2-9b")),
        ("gemma2.context_length", Entry::U32(8192)),
        ("gemma2.embedding_length", Entry::U32(3584)),
        ("gemma2.block_count", Entry::U32(42)),
        ("gemma2.attention.head_count", Entry::U32(16)),
        ("gemma2.attention.head_count_kv", Entry::U32(8)),
        ("gemma2.attention.key_length", Entry::U32(256)),
        ("gemma2.attention.value_length", Entry::U32(256)),
        ("general.file_type", Entry::U32(32)),
        ("gemma2.attn_logit_softcapping", Entry::F32(50.0)),
        ("gemma2.final_logit_softcapping", Entry::F32(30.0)),
        ("gemma2.attention.sliding_window", Entry::U32(4096)),
    ])
}

#[test]
fn the_header_of_gemma_2_keeps_its_window_and_softcap() {
    let shape = gemma2().read().unwrap();
    let built_in = ModelShape::by_name("gemma-2-9b").unwrap();
    assert_eq!(shape.window(), built_in.window());
    assert_eq!(shape.softcap(), Some(50.0));
    assert_eq!(shape.score_scale(), built_in.score_scale());
    assert_eq!(shape.dtype(), Some(QueryDtype::Bf16));
    assert_eq!((shape.group(), shape.head_dim()), (2, 256));
}

#[test]
fn a_window_follows_its_pattern() {
    let pattern = "gemma2.attention.sliding_window_pattern";
    let listed: Vec<bool> = (0..42).map(|layer| layer % 2 == 0).collect();
    let by_list = gemma2().set(pattern, Entry::Bools(listed)).read().unwrap();
    let by_period = gemma2().set(pattern, Entry::U32(2)).read().unwrap();
    for layer in 0..42 {
        assert_eq!(
            by_list.window_of(layer),
            by_period.window_of(layer),
            "layer {layer}"
        );
    }
    for (window, entry, expected) in [
        (0, Entry::U32(2), None),
        (4096, Entry::U32(1), None),
        (4096, Entry::U32(6), Some(4096)),
    ] {
        let shape = gemma2()
            .set("gemma2.attention.sliding_window", Entry::U32(window))
            .set(pattern, entry)
            .read()
            .unwrap();
        assert_eq!(shape.window_of(1), expected);
    }
    let short = gemma2().set(pattern, Entry::Bools(vec![true; 41])).read();
    assert!(short.unwrap_err().to_string().contains("window.layers"));
}

#[test]
fn rope_scaling_is_read_by_its_type() {
    let scaled = |kind| {
        small()
            .set("llama.rope.scaling.type", Entry::Text(kind))
            .set("llama.rope.scaling.factor", Entry::F32(4.0))
            .set(
                "llama.rope.scaling.original_context_length",
                Entry::U32(2048),
            )
            .read()
            .unwrap()
            .rope()
            .scaling
            .clone()
    };
    assert_eq!(scaled("none"), RopeScaling::None);
    assert_eq!(scaled("linear"), RopeScaling::Linear { factor: 4.0 });
    let original_context = Some(2048);
    assert_eq!(
        scaled("yarn"),
        RopeScaling::Yarn {
            factor: 4.0,
            original_context
        }
    );
    assert_eq!(
        scaled("longrope"),
        RopeScaling::LongRope { original_context }
    );
    assert_eq!(
        scaled("novel"),
        RopeScaling::Other {
            name: "novel".into()
        }
    );
    let unscaled = small().set("llama.rope.scaling.type", Entry::Text("yarn"));
    let error = unscaled.read().unwrap_err().to_string();
    assert!(error.contains("llama.rope.scaling.factor"), "{error}");
}

#[test]
fn attention_of_another_kind_is_refused_by_name() {
    for (key, entry) in [
        ("llama.attention.kv_lora_rank", Entry::U32(512)),
        ("llama.attention.chunk_size", Entry::U32(8192)),
        ("llama.attention.max_alibi_bias", Entry::F32(8.0)),
        ("llama.ssm.state_size", Entry::U32(16)),
    ] {
        match small().set(key, entry).read() {
            Err(ModelError::Unsupported { field, .. }) => assert_eq!(field, key),
            other => panic!("{key}: {other:?}"),
        }
    }
    // No bias at all is written as 0 by some converters.
    let none = small().set("llama.attention.max_alibi_bias", Entry::F32(0.0));
    assert_eq!(none.read(), small().read());
}

#[test]
fn a_failing_read_is_reported_with_its_place() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("cable unplugged"))
        }
    }
    let error = gguf_error(ModelShape::from_gguf_reader(
        small().bytes()[..30].chain(Broken),
    ));
    assert!(matches!(error, GgufError::Io { offset: 30, .. }), "{error}");
    assert!(error.to_string().contains("cable unplugged"), "{error}");
}

proptest! {
    #[test]
    fn random_bytes_after_the_prefix_are_an_error(
        tail in prop::collection::vec(any::<u8>(), 0..512),
        count in 0_u64..4,
    ) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(tail);
        // No architecture can come about by chance.
        prop_assert!(ModelShape::from_gguf_header(&bytes).is_err());
    }

    #[test]
    fn a_header_with_several_bytes_replaced_gives_an_error_or_a_sound_shape(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = gemma2().bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(shape) = ModelShape::from_gguf_header(&bytes) {
            prop_assert_eq!(shape.group() * shape.kv_heads(), shape.query_heads());
            prop_assert!(shape.head_dim() > 0 && shape.layers() > 0);
        }
    }
}

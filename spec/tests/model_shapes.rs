//! The built-in models, and what makes figures a possible shape.

use pagesmith_spec::model::{ModelError, ModelFields, Rope, RopeScaling, Window, WindowedLayers};
use pagesmith_spec::{KvDtype, ModelShape, QueryDtype};

fn llama() -> ModelFields {
    ModelShape::by_name("llama-3-8b")
        .expect("a built-in name")
        .into()
}

/// The field that the refusal names.
fn refused(fields: ModelFields) -> &'static str {
    match ModelShape::new(fields) {
        Err(ModelError::Value { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_built_in_models_have_their_published_figures() {
    // name, layers, query heads, KV heads, head dim, hidden, vocabulary, context, rope base
    #[rustfmt::skip]
    let published = [
        ("llama-3-8b",    32,  32,  8, 128,  4096, 128_256,   8_192,   5e5),
        ("llama-3-70b",   80,  64,  8, 128,  8192, 128_256,   8_192,   5e5),
        ("llama-3-405b", 126, 128,  8, 128, 16384, 128_256, 131_072,   5e5),
        ("mistral-7b",    32,  32,  8, 128,  4096,  32_768,  32_768,   1e6),
        ("qwen2-7b",      28,  28,  4, 128,  3584, 152_064, 131_072,   1e6),
        ("phi-3-mini",    32,  32, 32,  96,  3072,  32_064, 131_072,   1e4),
        ("gemma-2-9b",    42,  16,  8, 256,  3584, 256_000,   8_192,   1e4),
        ("smollm2-135m",  30,   9,  3,  64,   576,  49_152,   8_192,   1e5),
    ];
    assert_eq!(ModelShape::all().len(), published.len());
    for (name, layers, query_heads, kv_heads, head_dim, hidden, vocabulary, context, base) in
        published
    {
        let shape = ModelShape::by_name(name).unwrap();
        assert_eq!(shape.name(), name);
        assert_eq!(shape.layers(), layers, "{name}");
        assert_eq!(shape.query_heads(), query_heads, "{name}");
        assert_eq!(shape.kv_heads(), kv_heads, "{name}");
        assert_eq!(shape.group(), query_heads / kv_heads, "{name}");
        assert_eq!(shape.head_dim(), head_dim, "{name}");
        assert_eq!(shape.hidden_size(), Some(hidden), "{name}");
        assert_eq!(shape.vocabulary(), Some(vocabulary), "{name}");
        assert_eq!(shape.max_context(), context, "{name}");
        assert_eq!(shape.rope().base, base, "{name}");
        assert_eq!(shape.rotated_dim(), head_dim, "{name}");
        assert_eq!(shape.dtype(), Some(QueryDtype::Bf16), "{name}");
    }
}

#[test]
fn only_gemma_needs_a_window_and_a_softcap() {
    for shape in ModelShape::all() {
        let needs = shape.name() == "gemma-2-9b";
        assert_eq!(shape.window().is_some(), needs, "{}", shape.name());
        assert_eq!(shape.softcap().is_some(), needs, "{}", shape.name());
    }
    let gemma = ModelShape::by_name("gemma-2-9b").unwrap();
    assert_eq!(gemma.softcap(), Some(50.0));
    assert_eq!(gemma.window_of(0), Some(4096));
    assert_eq!(gemma.window_of(1), None);
    assert_eq!(gemma.window_of(41), None);
    assert_eq!(gemma.score_scale(), 1.0 / 16.0);
}

#[test]
fn a_tokens_cache_has_the_bytes_that_planners_know() {
    let bytes = |name: &str, dtype| ModelShape::by_name(name).unwrap().kv_bytes_per_token(dtype);
    assert_eq!(bytes("llama-3-70b", KvDtype::Bf16), 320 * 1024);
    assert_eq!(bytes("llama-3-70b", KvDtype::Fp8E4M3), 160 * 1024);
    assert_eq!(bytes("llama-3-8b", KvDtype::F16), 128 * 1024);
    // The largest shape there can be does not overflow.
    let largest = ModelShape::new(ModelFields {
        layers: 1024,
        query_heads: 1024,
        kv_heads: 1024,
        head_dim: 1024,
        ..llama()
    })
    .unwrap();
    assert_eq!(largest.kv_bytes_per_token(KvDtype::Bf16), 1 << 32);
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_and_all() {
    for (name, expected) in [
        ("llama3-8b", Some("llama-3-8b")),
        ("Llama_3_70B", Some("llama-3-70b")),
        ("mistral", Some("mistral-7b")),
        ("gemma2-9b-it", Some("gemma-2-9b")),
        ("phi3-mini", Some("phi-3-mini")),
        ("gpt-4", None),
        ("", None),
    ] {
        let error = ModelShape::by_name(name).unwrap_err();
        for known in ModelShape::all() {
            assert!(error.to_string().contains(known.name()), "{error}");
        }
        match error {
            ModelError::Unknown { nearest, .. } => assert_eq!(nearest, expected, "{name}"),
            other => panic!("{other:?}"),
        }
    }
    let long = ModelShape::by_name(&"ü".repeat(100_000)).unwrap_err();
    assert!(long.to_string().len() < 1000, "{long}");
}

#[test]
fn a_figure_out_of_range_is_refused_by_field() {
    assert_eq!(
        refused(ModelFields {
            layers: 0,
            ..llama()
        }),
        "layers"
    );
    assert_eq!(
        refused(ModelFields {
            layers: 1025,
            ..llama()
        }),
        "layers"
    );
    assert_eq!(
        refused(ModelFields {
            query_heads: 0,
            ..llama()
        }),
        "query_heads"
    );
    assert_eq!(
        refused(ModelFields {
            kv_heads: 0,
            ..llama()
        }),
        "kv_heads"
    );
    assert_eq!(
        refused(ModelFields {
            head_dim: 0,
            ..llama()
        }),
        "head_dim"
    );
    assert_eq!(
        refused(ModelFields {
            head_dim: u32::MAX,
            ..llama()
        }),
        "head_dim"
    );
    assert_eq!(
        refused(ModelFields {
            max_context: 0,
            ..llama()
        }),
        "max_context"
    );
    assert_eq!(
        refused(ModelFields {
            hidden_size: Some(0),
            ..llama()
        }),
        "hidden_size"
    );
    assert_eq!(
        refused(ModelFields {
            vocabulary: Some(0),
            ..llama()
        }),
        "vocabulary"
    );
    assert_eq!(
        refused(ModelFields {
            softcap: Some(0.0),
            ..llama()
        }),
        "softcap"
    );
    assert_eq!(
        refused(ModelFields {
            softcap: Some(f64::NAN),
            ..llama()
        }),
        "softcap"
    );
    assert_eq!(
        refused(ModelFields {
            score_scale: Some(-1.0),
            ..llama()
        }),
        "score_scale"
    );
    assert_eq!(
        refused(ModelFields {
            name: String::new(),
            ..llama()
        }),
        "name"
    );
    assert_eq!(
        refused(ModelFields {
            name: "a\nb".into(),
            ..llama()
        }),
        "name"
    );
}

#[test]
fn heads_that_do_not_divide_are_refused_with_those_that_do() {
    let error = ModelShape::new(ModelFields {
        query_heads: 28,
        kv_heads: 8,
        ..llama()
    })
    .unwrap_err()
    .to_string();
    assert_eq!(
        error,
        "model: kv_heads = 8 does not divide query_heads = 28; use one of 1, 2, 4, 7, 14, 28"
    );
    // More KV heads than query heads is the same mistake.
    let error = ModelShape::new(ModelFields {
        kv_heads: 64,
        ..llama()
    })
    .unwrap_err();
    assert!(error.to_string().contains("kv_heads = 64"), "{error}");
}

#[test]
fn an_impossible_rope_is_refused_by_field() {
    let rope = |rope| refused(ModelFields { rope, ..llama() });
    let plain = llama().rope;
    assert_eq!(
        rope(Rope {
            base: 0.0,
            ..plain.clone()
        }),
        "rope.base"
    );
    assert_eq!(
        rope(Rope {
            base: f64::INFINITY,
            ..plain.clone()
        }),
        "rope.base"
    );
    assert_eq!(
        rope(Rope {
            rotated_dim: Some(130),
            ..plain.clone()
        }),
        "rope.rotated_dim"
    );
    assert_eq!(
        rope(Rope {
            rotated_dim: Some(63),
            ..plain.clone()
        }),
        "rope.rotated_dim"
    );
    let scaled = |scaling| {
        rope(Rope {
            scaling,
            ..plain.clone()
        })
    };
    assert_eq!(
        scaled(RopeScaling::Linear { factor: -2.0 }),
        "rope.scaling.factor"
    );
    assert_eq!(
        scaled(RopeScaling::LongRope {
            original_context: Some(0)
        }),
        "rope.scaling.original_context"
    );
}

#[test]
fn a_window_is_kept_where_it_hides_something_and_nowhere_else() {
    let window = |tokens, layers| {
        let window = Some(Window { tokens, layers });
        ModelShape::new(ModelFields { window, ..llama() })
    };
    let whole = window(8192, WindowedLayers::All).unwrap();
    assert_eq!(whole.window(), None);
    let almost = window(8191, WindowedLayers::All).unwrap();
    assert_eq!(almost.window_of(31), Some(8191));
    let sixth = window(512, WindowedLayers::AllButEach(6)).unwrap();
    let full: Vec<u32> = (0..32)
        .filter(|layer| sixth.window_of(*layer).is_none())
        .collect();
    assert_eq!(full, [5, 11, 17, 23, 29]);

    for refused in [
        window(0, WindowedLayers::All),
        window(512, WindowedLayers::AllButEach(0)),
        window(512, WindowedLayers::AllButEach(1)),
        window(512, WindowedLayers::Listed(vec![true; 31])),
    ] {
        match refused {
            Err(ModelError::Value { field, .. }) => assert!(field.starts_with("window"), "{field}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_shape_reads_back_from_its_json_and_is_checked_again() {
    for shape in ModelShape::all() {
        let json = serde_json::to_string(shape).unwrap();
        assert_eq!(&serde_json::from_str::<ModelShape>(&json).unwrap(), shape);
        let broken = json.replace("\"kv_heads\":", "\"kv_heads\":5");
        let error = serde_json::from_str::<ModelShape>(&broken).unwrap_err();
        assert!(error.to_string().contains("kv_heads"), "{error}");
    }
}

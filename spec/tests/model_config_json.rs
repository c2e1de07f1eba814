//! Hugging Face config.json files: as published, incomplete, and hostile.

use pagesmith_spec::model::{ModelError, RopeScaling, WindowedLayers};
use pagesmith_spec::{ModelShape, QueryDtype};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(config: &Value) -> Result<ModelShape, ModelError> {
    ModelShape::from_config_json(config.to_string().as_bytes())
}

/// `base` with the fields of `changes`; a null removes.
fn with(mut base: Value, changes: Value) -> Value {
    for (field, value) in changes.as_object().expect("changes are an object") {
        base[field] = value.clone();
    }
    base
}

fn llama_3_8b() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "attention_bias": false,
        "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
        "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256
    })
}

fn qwen2_7b() -> Value {
    json!({
        "hidden_size": 3584, "max_position_embeddings": 131072, "max_window_layers": 28,
        "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28,
        "num_key_value_heads": 4, "rope_theta": 1000000.0, "sliding_window": 131072,
        "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 152064
    })
}

fn gemma_2_9b() -> Value {
    json!({
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "head_dim": 256,
        "hidden_size": 3584, "max_position_embeddings": 8192, "model_type": "gemma2",
        "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
        "query_pre_attn_scalar": 256, "rope_theta": 10000.0, "sliding_window": 4096,
        "sliding_window_size": 4096, "torch_dtype": "bfloat16", "vocab_size": 256000
    })
}

fn phi_3_mini(window: u32, context: u32) -> Value {
    json!({
        "hidden_size": 3072, "max_position_embeddings": context, "model_type": "phi3",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
        "sliding_window": window, "torch_dtype": "bfloat16", "vocab_size": 32064
    })
}

#[test]
fn published_configs_give_the_built_in_shapes() {
    let longrope = json!({"rope_scaling": {
        "long_factor": [1.07, 1.12], "short_factor": [1.1, 1.1], "type": "longrope"
    }});
    let llama_405b = with(
        llama_3_8b(),
        json!({
            "hidden_size": 16384, "max_position_embeddings": 131072, "num_attention_heads": 128,
            "num_hidden_layers": 126, "rope_scaling": {
                "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192, "rope_type": "llama3"
            }
        }),
    );
    let mistral = json!({
        "hidden_size": 4096, "max_position_embeddings": 32768, "model_type": "mistral",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "rope_theta": 1000000.0, "sliding_window": null, "torch_dtype": "bfloat16",
        "vocab_size": 32768
    });
    for (name, config) in [
        ("llama-3-8b", llama_3_8b()),
        ("llama-3-405b", llama_405b),
        ("mistral-7b", mistral),
        ("qwen2-7b", qwen2_7b()),
        ("phi-3-mini", with(phi_3_mini(262_144, 131_072), longrope)),
        ("gemma-2-9b", gemma_2_9b()),
    ] {
        let shape = read(&config).unwrap().with_name(name).unwrap();
        assert_eq!(shape, ModelShape::by_name(name).unwrap(), "{name}");
    }
}

#[test]
fn fields_that_may_be_left_out_take_their_meaning_from_the_others() {
    let bare = json!({
        "hidden_size": 4096, "max_position_embeddings": 2048,
        "num_attention_heads": 32, "num_hidden_layers": 32
    });
    let shape = read(&bare).unwrap();
    assert_eq!((shape.kv_heads(), shape.group()), (32, 1));
    assert_eq!(shape.head_dim(), 128);
    assert_eq!(shape.rope().base, 10_000.0);
    assert_eq!(shape.name(), "unnamed");
    assert_eq!((shape.dtype(), shape.vocabulary()), (None, None));

    // An explicit head dim wins over the quotient, as in Qwen 3 and Gemma.
    let qwen3 = with(bare.clone(), json!({"head_dim": 64, "hidden_size": 1000}));
    assert_eq!(read(&qwen3).unwrap().head_dim(), 64);
    let falcon = with(bare.clone(), json!({"multi_query": true}));
    assert_eq!(read(&falcon).unwrap().kv_heads(), 1);
    let named = with(
        bare.clone(),
        json!({"_name_or_path": "/data/models/Some-7B/"}),
    );
    assert_eq!(read(&named).unwrap().name(), "Some-7B");
    for (field, name, dtype) in [
        ("dtype", "float16", Some(QueryDtype::F16)),
        ("torch_dtype", "torch.bfloat16", Some(QueryDtype::Bf16)),
        ("torch_dtype", "float32", None),
    ] {
        assert_eq!(
            read(&with(bare.clone(), json!({field: name})))
                .unwrap()
                .dtype(),
            dtype
        );
    }
}

#[test]
fn a_multimodal_config_gives_the_shape_of_its_text_model() {
    let config = json!({
        "model_type": "mistral3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1},
        "text_config": with(llama_3_8b(), json!({"torch_dtype": null, "model_type": "mistral"}))
    });
    let shape = read(&config).unwrap();
    assert_eq!((shape.layers(), shape.group()), (32, 4));
    assert_eq!(shape.dtype(), Some(QueryDtype::Bf16));

    let mut broken = config;
    broken["text_config"]["num_hidden_layers"] = json!("32");
    let error = read(&broken).unwrap_err().to_string();
    assert!(error.contains("text_config.num_hidden_layers"), "{error}");
}

#[test]
fn windows_keep_the_layers_that_have_them() {
    let v01 = with(
        llama_3_8b(),
        json!({"sliding_window": 4096, "model_type": "mistral"}),
    );
    assert_eq!(read(&v01).unwrap().window_of(31), Some(4096));
    assert_eq!(
        read(&phi_3_mini(2047, 4096)).unwrap().window_of(0),
        Some(2047)
    );

    let qwen = with(
        qwen2_7b(),
        json!({"use_sliding_window": true, "max_window_layers": 20, "sliding_window": 4096}),
    );
    let qwen = read(&qwen).unwrap();
    assert_eq!((qwen.window_of(19), qwen.window_of(20)), (None, Some(4096)));

    let types: Vec<&str> = (0..42)
        .map(|layer| ["sliding_attention", "full_attention"][layer % 2])
        .collect();
    let listed = read(&with(gemma_2_9b(), json!({"layer_types": types}))).unwrap();
    let by_period = read(&gemma_2_9b()).unwrap();
    for layer in 0..42 {
        assert_eq!(
            listed.window_of(layer),
            by_period.window_of(layer),
            "layer {layer}"
        );
    }
    let full = vec!["full_attention"; 42];
    let none = read(&with(gemma_2_9b(), json!({"layer_types": full}))).unwrap();
    assert_eq!(none.window(), None);

    let gemma3 = with(
        gemma_2_9b(),
        json!({"sliding_window_pattern": 6, "model_type": "gemma3_text"}),
    );
    assert_eq!(
        read(&gemma3).unwrap().window().unwrap().layers,
        WindowedLayers::AllButEach(6)
    );
}

#[test]
fn rope_is_read_where_either_generation_of_transformers_writes_it() {
    let yarn = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
    let expected = RopeScaling::Yarn {
        factor: 4.0,
        original_context: Some(32768),
    };
    let old = read(&with(qwen2_7b(), json!({"rope_scaling": yarn}))).unwrap();
    assert_eq!(old.rope().scaling, expected);

    let mut parameters = yarn;
    parameters["rope_theta"] = json!(7e5);
    let new = json!({"rope_theta": null, "rope_parameters": parameters});
    let new = read(&with(qwen2_7b(), new)).unwrap();
    assert_eq!((&new.rope().scaling, new.rope().base), (&expected, 7e5));

    let by_layer = json!({"rope_theta": null, "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}
    }});
    let by_layer = read(&with(gemma_2_9b(), by_layer)).unwrap();
    assert_eq!(by_layer.rope().base, 1e6);
    assert_eq!(by_layer.rope().scaling, RopeScaling::Linear { factor: 8.0 });

    let partial = read(&with(llama_3_8b(), json!({"partial_rotary_factor": 0.75}))).unwrap();
    assert_eq!(partial.rotated_dim(), 96);
    let other = read(&with(
        llama_3_8b(),
        json!({"rope_scaling": {"type": "novel"}}),
    ))
    .unwrap();
    assert_eq!(
        other.rope().scaling,
        RopeScaling::Other {
            name: "novel".into()
        }
    );
}

#[test]
fn a_scale_of_the_scores_other_than_the_usual_is_kept() {
    let gemma_27b = with(
        gemma_2_9b(),
        json!({"query_pre_attn_scalar": 144, "head_dim": 128}),
    );
    assert_eq!(read(&gemma_27b).unwrap().score_scale(), 1.0 / 12.0);
    let granite = with(llama_3_8b(), json!({"attention_multiplier": 0.0078125}));
    assert_eq!(read(&granite).unwrap().score_scale(), 0.0078125);
    let scale = read(&llama_3_8b()).unwrap().score_scale();
    assert!((scale - 0.088_388_347_648).abs() < 1e-12, "{scale}");
}

#[test]
fn a_missing_field_is_named_with_the_way_to_get_it() {
    for field in [
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
    ] {
        match read(&with(llama_3_8b(), json!({field: null}))) {
            Err(error @ ModelError::Missing { .. }) => {
                let error = error.to_string();
                assert!(
                    error.contains(field) && error.contains("use_diff=False"),
                    "{error}"
                );
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    let error = read(&with(llama_3_8b(), json!({"hidden_size": null}))).unwrap_err();
    assert!(error.to_string().contains("head_dim"), "{error}");
    let unscaled = json!({"rope_scaling": {"rope_type": "linear"}});
    let error = read(&with(llama_3_8b(), unscaled)).unwrap_err();
    assert!(error.to_string().contains("rope_scaling.factor"), "{error}");
}

#[test]
fn a_field_of_another_type_is_named_with_what_it_holds() {
    for (field, value) in [
        ("num_hidden_layers", json!("32")),
        ("num_attention_heads", json!(32.5)),
        ("num_key_value_heads", json!([8])),
        ("max_position_embeddings", json!(-1)),
        ("vocab_size", json!(4_294_967_296_u64)),
        ("head_dim", json!({})),
        ("sliding_window", json!(true)),
        ("attn_logit_softcapping", json!("50")),
        ("rope_theta", json!("500000")),
        ("rope_scaling", json!("yarn")),
        ("torch_dtype", json!(16)),
        ("model_type", json!(1)),
        ("layer_types", json!("full_attention")),
    ] {
        match read(&with(llama_3_8b(), json!({field: value}))) {
            Err(ModelError::Type { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn figures_that_do_not_fit_together_are_refused() {
    for (changes, named) in [
        (json!({"num_key_value_heads": 5}), "kv_heads = 5"),
        (json!({"num_key_value_heads": 0}), "kv_heads = 0"),
        (json!({"num_attention_heads": 0}), "query_heads = 0"),
        (json!({"num_attention_heads": 33}), "hidden_size = 4096"),
        (
            json!({"num_hidden_layers": 4_000_000_000_u32}),
            "layers = 4000000000",
        ),
        (json!({"query_pre_attn_scalar": -1}), "score_scale"),
        (
            json!({"partial_rotary_factor": 1.5}),
            "partial_rotary_factor",
        ),
    ] {
        let error = read(&with(llama_3_8b(), changes)).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn attention_of_another_kind_is_refused_by_name() {
    for (changes, field) in [
        (json!({"kv_lora_rank": 512}), "kv_lora_rank"),
        (
            json!({"attention_chunk_size": 8192}),
            "attention_chunk_size",
        ),
        (json!({"alibi": true}), "alibi"),
        (json!({"attn_config": {"alibi": true}}), "attn_config"),
        (json!({"model_type": "gpt_oss"}), "model_type"),
        (
            json!({"layer_types": ["linear_attention", "full_attention"]}),
            "layer_types",
        ),
        (
            json!({"layers_block_type": ["mamba", "attention"]}),
            "layers_block_type",
        ),
    ] {
        match read(&with(llama_3_8b(), changes)) {
            Err(ModelError::Unsupported { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn what_is_no_config_is_refused_with_the_place() {
    for (text, named) in [
        ("", "line 1"),
        ("{\"num_hidden_layers\": 32,", "line 1"),
        ("[]", "a list"),
        ("null", "null"),
        ("{\"rope_theta\": Infinity}", "line 1"),
    ] {
        match ModelShape::from_config_json(text.as_bytes()) {
            Err(ModelError::Json { message }) => assert!(message.contains(named), "{message}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let deep = "[".repeat(1 << 20);
    assert!(matches!(
        ModelShape::from_config_json(deep.as_bytes()),
        Err(ModelError::Json { .. })
    ));
    let long = vec![b' '; 5 << 20];
    assert!(matches!(
        ModelShape::from_config_json(&long),
        Err(ModelError::TooLong { .. })
    ));
}

/// Any JSON value, small.
fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u32..300).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("sliding_attention")),
        Just(json!("llama3")),
        Just(json!("qwen2")),
    ];
    scalar.prop_recursive(2, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,8}", inner.clone(), 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>()),
            (inner.clone(), inner).prop_map(|(kind, factor)| json!({
                "rope_type": kind, "factor": factor, "low_freq_factor": 1,
                "high_freq_factor": 4, "original_max_position_embeddings": 8192
            })),
        ]
    })
}

proptest! {
    #[test]
    fn any_values_in_any_fields_give_a_sound_shape_or_an_error(
        changes in prop::collection::vec((
            prop::sample::select(vec![
                "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                "hidden_size", "vocab_size", "max_position_embeddings", "sliding_window",
                "sliding_window_pattern", "max_window_layers", "layer_types", "model_type",
                "use_sliding_window", "rope_scaling", "rope_parameters", "rope_theta",
                "partial_rotary_factor", "attn_logit_softcapping", "query_pre_attn_scalar",
                "dtype", "text_config", "_name_or_path", "multi_query",
            ]),
            any_value(),
        ), 1..4),
    ) {
        let mut config = llama_3_8b();
        for (field, value) in changes {
            config[field] = value;
        }
        match read(&config) {
            Ok(shape) => {
                prop_assert_eq!(shape.group() * shape.kv_heads(), shape.query_heads());
                for layer in 0..shape.layers() {
                    prop_assert!(shape.window_of(layer).is_none_or(|window| window > 0));
                }
                prop_assert!(shape.score_scale().is_normal());
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(ModelShape::from_config_json(&bytes).is_err());
    }
}

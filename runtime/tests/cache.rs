//! The kernel cache as its users meet it: round trips, damage, foreign files, odd directories.

mod common;

use common::{a100, exclusion, image, put, record, spec, variants};
use pagesmith_runtime::cache::{CacheError, FindError, KernelCache, Problem, ProblemKind};
use pagesmith_spec::{Arch, ContentHash, Gpu, TuningRecord, Variant};
use std::fs;
use std::path::{Path, PathBuf};

fn cache(root: &Path) -> KernelCache {
    KernelCache::open_or_create(root, &a100()).expect("a fresh directory")
}

/// Every file of a cache with that extension.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_put_is_found_again_by_spec_id_prefix_and_listing() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let variants = variants();
    let mut records = Vec::new();
    for (variant, time) in variants.iter().zip([30.0, 10.0, 20.0]) {
        records.push(put(&cache, variant, time));
    }

    let reopened = KernelCache::open(root.path(), &a100()).expect("opens");
    assert_eq!(reopened.lookup(&spec()).expect("a hit"), records[1]);
    let found = reopened.candidates(&spec()).expect("reads");
    let times: Vec<f64> = found.records.iter().map(|record| record.time_us).collect();
    assert_eq!(times, [10.0, 20.0, 30.0]);
    assert_eq!(found.problems, []);
    for record in &records {
        assert_eq!(reopened.find(&record.id).expect("by id"), *record);
        let prefix = &record.id[..record.id.len() - 2];
        assert_eq!(reopened.find(prefix).expect("by prefix"), *record);
        let image = reopened.load_image(record).expect("an image");
        assert_eq!(image.hash(), record.image);
    }
    let mut ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    ids.sort_unstable();
    let listed = reopened.entries().expect("reads").records;
    assert_eq!(
        listed.iter().map(|record| &record.id).collect::<Vec<_>>(),
        ids
    );
    let verified = reopened.verify().expect("reads");
    assert_eq!((verified.records, verified.images), (3, 3));
    assert_eq!(verified.problems, []);
}

#[test]
fn an_ambiguous_prefix_lists_the_ids_and_an_unknown_one_says_where_it_looked() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    for variant in &variants() {
        put(&cache, variant, 1.0);
    }
    match cache.find("decode-d128") {
        Err(FindError::Ambiguous { ids, .. }) => assert_eq!(ids.len(), 3),
        other => panic!("{other:?}"),
    }
    let error = cache.find("prefill").unwrap_err().to_string();
    assert!(
        error.contains("prefill") && error.contains("autotune cache ls"),
        "{error}"
    );
}

#[test]
fn measured_beats_modelled_whatever_the_times() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let variants = variants();
    put(&cache, &variants[0], 1.0);
    let image = image(&variants[1]);
    let mut slow = record(&variants[1], &image, 50.0);
    slow.provenance = common::measured();
    cache.put(&image, &slow).expect("kept");
    assert_eq!(cache.lookup(&spec()).expect("a hit"), slow);
}

#[test]
fn times_within_two_percent_are_decided_by_registers_and_not_by_noise() {
    let [a, b, _] = variants();
    for (time_a, time_b) in [(10.0, 10.15), (10.15, 10.0)] {
        let root = tempfile::tempdir().expect("a directory");
        let cache = cache(root.path());
        for (variant, time, registers) in [(&a, time_a, 128), (&b, time_b, 96)] {
            let mut image = image(variant);
            image.header.entries[0].resources.registers = registers;
            cache
                .put(&image, &record(variant, &image, time))
                .expect("kept");
        }
        assert_eq!(cache.lookup(&spec()).expect("a hit").variant, b);
    }
}

#[test]
fn a_missing_directory_is_an_empty_cache_and_the_miss_names_the_command() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = KernelCache::open(root.path().join("nothing"), &a100()).expect("opens");
    assert_eq!(cache.entries().expect("reads").records, []);
    assert_eq!(cache.verify().expect("reads").records, 0);
    let error = cache.lookup(&spec()).unwrap_err();
    assert!(matches!(error, CacheError::Miss(_)));
    let text = error.to_string();
    assert!(text.contains("autotune run --gpu a100-sxm4-80gb"), "{text}");
    assert!(!root.path().join("nothing").exists(), "reading wrote");
}

#[test]
fn a_record_cut_or_changed_anywhere_is_named_and_the_others_still_work() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [good, bad, _] = variants();
    let good = put(&cache, &good, 2.0);
    put(&cache, &bad, 1.0);
    let path = files(cache.directory(), "json")
        .into_iter()
        .find(|path| path.ends_with(format!("{}.json", bad.hash())))
        .expect("its record");
    let text = fs::read(&path).expect("readable");

    let damaged = |text: &[u8]| {
        fs::write(&path, text).expect("writable");
        let found = cache.candidates(&spec()).expect("reads");
        assert_eq!(found.records.first(), Some(&good));
        found.problems.into_iter().next()
    };
    for end in (0..text.len() - 2).step_by(7) {
        assert!(damaged(&text[..end]).is_some(), "cut at {end}");
    }
    for at in (0..text.len()).step_by(3) {
        // White space between tokens may change without harm; everything else is noticed.
        if text[at].is_ascii_whitespace() {
            continue;
        }
        let mut changed = text.clone();
        changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
        let problem = damaged(&changed).unwrap_or_else(|| panic!("changed at {at}"));
        assert_eq!(problem.path(), path);
    }
    // Putting it again heals it.
    put(&cache, &bad, 1.0);
    assert_eq!(cache.lookup(&spec()).expect("a hit").variant, bad);
}

#[test]
fn a_damaged_or_missing_image_is_named_and_heals_when_it_is_put_again() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, ..] = variants();
    let record = put(&cache, &variant, 1.0);
    let path = cache.image_path(&record.image);
    let bytes = fs::read(&path).expect("an image");

    let mut flipped = bytes.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    let other = image(&variants()[1]).to_bytes();
    type Expected = fn(&ProblemKind) -> bool;
    let cases: [(&[u8], Expected); 4] = [
        (&bytes[..bytes.len() / 2], |kind| {
            matches!(kind, ProblemKind::Image(_))
        }),
        (&flipped, |kind| matches!(kind, ProblemKind::Image(_))),
        (b"", |kind| matches!(kind, ProblemKind::Image(_))),
        // Whole, and another variant's.
        (&other, |kind| matches!(kind, ProblemKind::Hash { .. })),
    ];
    for (bytes, expected) in cases {
        fs::write(&path, bytes).expect("writable");
        let problem = cache.load_image(&record).unwrap_err();
        assert!(expected(problem.kind()), "{problem}");
        assert_eq!(cache.verify().expect("reads").problems.len(), 1);
    }
    fs::remove_file(&path).expect("there");
    let problem = cache.load_image(&record).unwrap_err();
    assert_eq!(*problem.kind(), ProblemKind::Missing);

    put(&cache, &variant, 1.0);
    assert!(cache.load_image(&record).is_ok());
}

#[test]
fn images_of_another_arch_or_abi_are_refused_when_put_and_when_read() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, ..] = variants();
    let mut foreign = image(&variant);
    foreign.header.arch = Arch::SM_90;
    let mut old = image(&variant);
    old.header.abi = ContentHash::of("test", &[b"older"]);
    for image in [foreign, old] {
        let record = record(&variant, &image, 1.0);
        let error = cache.put(&image, &record).unwrap_err();
        assert!(matches!(error, CacheError::Unfit { .. }), "{error}");
        assert_eq!(files(cache.directory(), "image"), [] as [PathBuf; 0]);
        // As a copy between machines, or an upgrade, leaves it.
        let path = cache.image_path(&image.hash());
        fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
        fs::write(&path, image.to_bytes()).expect("writable");
        let problem = cache.load_image(&record).unwrap_err();
        assert!(matches!(problem.kind(), ProblemKind::Load(_)), "{problem}");
        fs::remove_file(path).expect("there");
    }
}

#[test]
fn records_that_do_not_belong_here_are_refused_when_put() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, other, _] = variants();
    let image = image(&variant);
    let good = record(&variant, &image, 1.0);
    type Change = fn(&mut TuningRecord);
    let changes: [(&str, Change); 10] = [
        ("a finding", |r| r.proof.findings = 1),
        ("no proof", |r| r.proof.cases = 0),
        ("an error beyond the tolerance", |r| {
            r.proof.max_relative_l2 = 3.1e-3
        }),
        ("no number as error", |r| r.proof.max_relative_l2 = f64::NAN),
        ("another GPU's time", |r| {
            r.provenance = common::modelled("h200")
        }),
        ("no time", |r| r.time_us = f64::NAN),
        ("a negative time", |r| r.time_us = -1.0),
        ("no workload", |r| r.workload.batch = 0),
        ("another id", |r| r.id.push('0')),
        ("an infinite error", |r| {
            r.proof.max_relative_l2 = f64::INFINITY
        }),
    ];
    for (what, change) in changes {
        let mut record = good.clone();
        change(&mut record);
        let error = cache.put(&image, &record).unwrap_err();
        assert!(matches!(error, CacheError::Unfit { .. }), "{what}: {error}");
    }
    let mut swapped = record(&other, &common::image(&other), 1.0);
    swapped.image = ContentHash::of("test", &[b"not this image"]);
    assert!(cache.put(&common::image(&other), &swapped).is_err());
    assert_eq!(files(root.path(), "json"), [] as [PathBuf; 0]);
}

#[test]
fn a_record_filed_under_another_variant_or_format_is_named() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, ..] = variants();
    put(&cache, &variant, 1.0);
    let path = files(cache.directory(), "json").remove(0);
    let text = fs::read_to_string(&path).expect("readable");

    let moved = path.with_file_name(format!("{}.json", ContentHash::of("test", &[])));
    fs::rename(&path, &moved).expect("writable");
    let problems = cache.candidates(&spec()).expect("reads").problems;
    assert!(
        matches!(problems[0].kind(), ProblemKind::Id { .. }),
        "{}",
        problems[0]
    );

    fs::rename(&moved, &path).expect("writable");
    let later = text.replace("\"format\": 1", "\"format\": 2");
    assert_ne!(later, text);
    fs::write(&path, later).expect("writable");
    let problems = cache.candidates(&spec()).expect("reads").problems;
    assert!(
        matches!(problems[0].kind(), ProblemKind::Format { found: 2, .. }),
        "{}",
        problems[0]
    );
    let miss = cache.lookup(&spec()).unwrap_err().to_string();
    assert!(miss.contains("format 2 is not 1"), "{miss}");
}

#[test]
fn hostile_files_are_problems_and_never_a_panic_or_a_large_allocation() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let directory = cache.directory().join("records").join(spec().slug());
    fs::create_dir_all(&directory).expect("writable");
    let deep = "[".repeat(60_000);
    let long = " ".repeat(70_000);
    let hostile: [&[u8]; 9] = [
        b"",
        b"\0\0\0\0",
        b"null",
        b"[]",
        b"{\"format\":1}",
        b"{\"format\":-1}",
        b"{\"format\":1,\"hash\":\"zz\",\"contents\":{}}",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    for (index, bytes) in hostile.iter().enumerate() {
        fs::write(directory.join(format!("{index}.json")), bytes).expect("writable");
    }
    fs::create_dir(directory.join("directory.json")).expect("writable");
    let found = cache.candidates(&spec()).expect("reads");
    assert_eq!((found.records.len(), found.problems.len()), (0, 10));
    let too_long = |problem: &&Problem| matches!(problem.kind(), ProblemKind::TooLong { .. });
    assert_eq!(found.problems.iter().filter(too_long).count(), 1);
    assert!(cache.lookup(&spec()).is_err());
    assert_eq!(cache.verify().expect("reads").problems.len(), 10);
}

#[test]
fn unfinished_files_of_a_killed_writer_are_not_records() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, ..] = variants();
    put(&cache, &variant, 1.0);
    let directory = cache.directory().join("records").join(spec().slug());
    fs::write(directory.join(".writing-x7"), b"{\"form").expect("writable");
    let found = cache.candidates(&spec()).expect("reads");
    assert_eq!((found.records.len(), found.problems.len()), (1, 0));
}

#[test]
fn an_exclusion_is_remembered_until_the_source_changes() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, other, _] = variants();
    let source = ContentHash::of("test", &[b"source"]);
    cache
        .put_excluded(&variant, source, exclusion())
        .expect("kept");
    assert_eq!(cache.excluded(&variant, source), Ok(Some(exclusion())));
    assert_eq!(cache.excluded(&other, source), Ok(None));
    let changed = ContentHash::of("test", &[b"another source"]);
    assert_eq!(cache.excluded(&variant, changed), Ok(None));

    let path = files(cache.directory(), "json").remove(0);
    fs::write(&path, b"{").expect("writable");
    assert!(cache.excluded(&variant, source).is_err());
    assert_eq!(cache.verify().expect("reads").problems.len(), 1);
}

#[test]
fn an_image_is_reusable_only_for_the_source_it_was_made_from() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, other, _] = variants();
    let record = put(&cache, &variant, 1.0);
    let source = image(&variant).header.source;
    let (found, image) = cache
        .reusable(&variant, source)
        .expect("reads")
        .expect("a hit");
    assert_eq!((found, image.hash()), (record.clone(), record.image));
    let changed = ContentHash::of("test", &[b"changed"]);
    assert_eq!(cache.reusable(&variant, changed), Ok(None));
    assert_eq!(cache.reusable(&other, source), Ok(None));
}

#[test]
fn the_cache_of_one_gpu_is_empty_for_another() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    put(&cache, &variants()[0], 1.0);
    let h200 = Gpu::by_name("h200").expect("known");
    let other = KernelCache::open(root.path(), &h200).expect("opens");
    assert_eq!(other.entries().expect("reads").records, []);
    // Copied by hand, the records still say whose they are.
    fs::rename(cache.directory(), root.path().join("h200")).expect("writable");
    let found = other.candidates(&spec()).expect("reads");
    assert_eq!(found.records, []);
    assert!(matches!(found.problems[0].kind(), ProblemKind::Gpu { .. }));
}

#[test]
fn a_gpu_whose_name_is_a_path_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let mut gpu = a100();
    gpu.name = String::from("../../etc");
    assert!(matches!(
        KernelCache::open(root.path(), &gpu),
        Err(CacheError::Gpu(_))
    ));
}

#[test]
fn a_moved_cache_still_works_and_a_file_in_the_way_is_one_clear_error() {
    let root = tempfile::tempdir().expect("a directory");
    let before = root.path().join("before");
    let cache = cache(&before);
    let record = put(&cache, &variants()[0], 1.0);
    let after = root.path().join("after");
    fs::rename(&before, &after).expect("writable");
    let moved = KernelCache::open(&after, &a100()).expect("opens");
    assert_eq!(moved.lookup(&spec()).expect("a hit"), record);

    let file = root.path().join("file");
    fs::write(&file, b"").expect("writable");
    let error = KernelCache::open_or_create(&file, &a100()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("cannot create the directory") && text.contains("--cache"),
        "{text}"
    );
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_root_and_its_files_are_their_owners_alone_and_the_root_is_tagged() {
        let parent = tempfile::tempdir().expect("a directory");
        let root = parent.path().join("cache");
        let cache = cache(&root);
        put(&cache, &variants()[0], 1.0);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&root), 0o700);
        for path in files(&root, "json").iter().chain(&files(&root, "image")) {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        let tag = fs::read(root.join("CACHEDIR.TAG")).expect("tagged");
        assert!(tag.starts_with(b"Signature: 8a477f597d28d172789f06886806bc55"));
    }

    /// Whether permissions bind this process: they do not bind root.
    fn permissions_bind(directory: &Path) -> bool {
        fs::write(directory.join("probe"), b"").is_err()
    }

    #[test]
    fn a_read_only_cache_is_read_and_refuses_writes_before_any_work() {
        let parent = tempfile::tempdir().expect("a directory");
        let root = parent.path().join("cache");
        let cache = cache(&root);
        let record = put(&cache, &variants()[0], 1.0);
        let set = |mode| {
            fs::set_permissions(cache.directory(), fs::Permissions::from_mode(mode))
                .expect("the owner may");
        };
        set(0o500);
        let reading = KernelCache::open(&root, &a100()).expect("opens");
        assert_eq!(reading.lookup(&spec()).expect("a hit"), record);
        assert_eq!(reading.verify().expect("reads").problems, []);
        if permissions_bind(cache.directory()) {
            let error = KernelCache::open_or_create(&root, &a100()).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("cannot write") && text.contains("--cache"),
                "{text}"
            );
        }
        set(0o700);
    }
}

#[test]
fn threads_that_write_the_same_variants_at_once_leave_whole_files() {
    let root = tempfile::tempdir().expect("a directory");
    let variants = variants();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (root, variants) = (root.path(), &variants);
            scope.spawn(move || write_often(root, variants, thread));
        }
        let reader = cache(root.path());
        for _ in 0..50 {
            let found = reader.candidates(&spec()).expect("reads");
            assert_eq!(found.problems, [], "a reader saw a torn file");
            for record in &found.records {
                assert!(reader.load_image(record).is_ok());
            }
        }
    });
    assert_whole(root.path());
}

fn write_often(root: &Path, variants: &[Variant], writer: u32) {
    let cache = cache(root);
    for round in 0..20 {
        for variant in variants {
            put(&cache, variant, f64::from(1 + writer * 100 + round));
        }
    }
}

fn assert_whole(root: &Path) {
    let cache = cache(root);
    let verified = cache.verify().expect("reads");
    assert_eq!((verified.records, verified.images), (3, 3));
    assert_eq!(verified.problems, []);
    let left = fs::read_dir(cache.directory().join("records").join(spec().slug()))
        .expect("there")
        .count();
    assert_eq!(left, 3, "temporary files were left behind");
}

const WRITER: &str = "PAGESMITH_TEST_WRITER";

/// Not a test of its own: the other process of the one below.
#[test]
fn a_process_that_writes_when_asked() {
    if let Some(root) = std::env::var_os(WRITER) {
        write_often(Path::new(&root), &variants(), std::process::id() % 100);
    }
}

#[test]
fn processes_that_write_the_same_variants_at_once_leave_whole_files() {
    let root = tempfile::tempdir().expect("a directory");
    let program = std::env::current_exe().expect("this test");
    let children: Vec<_> = (0..3)
        .map(|_| {
            std::process::Command::new(&program)
                .args(["--exact", "a_process_that_writes_when_asked"])
                .env(WRITER, root.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("it starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert_whole(root.path());
}

#[test]
fn a_variant_tuned_again_to_the_same_image_keeps_one_file() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [a, ..] = variants();
    put(&cache, &a, 1.0);
    put(&cache, &a, 2.0);
    assert_eq!(files(root.path(), "image").len(), 1);
    assert_eq!(cache.verify().expect("reads").images, 1);
    assert_eq!(cache.lookup(a.spec()).expect("kept").time_us, 2.0);
}

#[test]
fn an_image_of_another_variant_is_refused_although_its_record_names_it() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, other, _] = variants();
    let foreign = image(&other);
    let mut record = record(&variant, &foreign, 1.0);
    let error = cache.put(&foreign, &record).unwrap_err().to_string();
    assert!(error.contains(&variant.id()), "{error}");

    // On disk, as a hostile or mixed-up cache would have it.
    put(&cache, &other, 1.0);
    record.image = foreign.hash();
    let problem = cache.load_image(&record).unwrap_err().to_string();
    assert!(problem.contains(&variant.id()), "{problem}");
}

#[test]
fn a_stray_file_among_the_records_is_named_and_the_rest_works() {
    let root = tempfile::tempdir().expect("a directory");
    let cache = cache(root.path());
    let [variant, ..] = variants();
    put(&cache, &variant, 1.0);
    let stray = cache.directory().join("records/notes.txt");
    fs::write(&stray, "mine").expect("writes");
    let found = cache.entries().expect("reads");
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.problems.len(), 1);
    assert_eq!(found.problems[0].path(), stray);
    assert!(cache.lookup(variant.spec()).is_ok());
}

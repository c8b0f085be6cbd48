//! Files that were made to do harm, and damaged ones: a sentence that names what is wrong, no panic, and no memory for what is not there.

use std::{fs, path::Path};

use burn::module::Module;
use burn_attn_models::{
    gpt2,
    weights::{Table, Weights},
};
use burn_attn_tests::{numbers::filled, parameters};

use super::{contents, file, folder, golden, model, refused, safetensors, write, written};

/// What opening a file of these bytes says.
#[track_caller]
fn refused_bytes(bytes: &[u8]) -> String {
    let (_folder, path) = file("model.safetensors", bytes);
    refused(&path)
}

/// What opening a safetensors file with this header and so many bytes of numbers says.
#[track_caller]
fn refused_header(header: &str, numbers: usize) -> String {
    refused_bytes(&safetensors(header, &vec![0; numbers]))
}

/// One tensor's entry.
fn entry(name: &str, shape: &str, offsets: [u64; 2]) -> String {
    format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets:?}}}")
}

#[test]
fn a_header_longer_than_the_file() {
    for len in [u64::MAX, u64::MAX - 8, 1 << 62, 99_999_999, 3] {
        let bytes = [&len.to_le_bytes()[..], b"{}"].concat();
        let expected =
            format!("its header should have {len} bytes, but there are at most 2 in a file of 10");
        assert_eq!(refused_bytes(&bytes), expected);
    }
}

#[test]
fn sizes_that_overflow() {
    let huge = u64::MAX;
    for shape in [
        format!("[{huge},2]"),
        format!("[{huge},{huge},{huge}]"),
        "[4611686018427387904]".into(),
    ] {
        let sentence = refused_header(&format!("{{{}}}", entry("a.weight", &shape, [0, 8])), 8);
        assert!(
            sentence.starts_with("tensor a.weight of F32 and shape ["),
            "{sentence}"
        );
        assert!(sentence.ends_with("cannot lie in 8 bytes"), "{sentence}");
    }
    // No number at all.
    for shape in [
        "[-1]",
        "[1e30]",
        "[18446744073709551616]",
        "[0.5]",
        "[[2]]",
        "2",
    ] {
        let sentence = refused_header(&format!("{{{}}}", entry("a", shape, [0, 8])), 8);
        assert!(
            sentence.starts_with("its header is damaged: "),
            "{sentence}"
        );
    }
}

#[test]
fn tensors_outside_the_file_or_over_each_other() {
    let two = |a, b| {
        refused_header(
            &format!("{{{},{}}}", entry("a", "[2]", a), entry("b", "[2]", b)),
            16,
        )
    };
    let before = |name, first, last, end| {
        format!(
            "tensor {name} lies in the bytes {first} to {last}, but the one before ends at {end}"
        )
    };
    assert_eq!(two([0, 8], [8, 24]), "tensor b ends at byte 24 of 16");
    assert_eq!(
        two([0, 8], [8, u64::MAX]),
        format!("tensor b ends at byte {} of 16", u64::MAX)
    );
    assert_eq!(two([0, 8], [0, 8]), before("b", 0, 8, 8));
    assert_eq!(two([0, 8], [4, 12]), before("b", 4, 12, 8));
    assert_eq!(two([0, 8], [12, 16]), before("b", 12, 16, 8));
    assert_eq!(two([0, 8], [8, 4]), before("b", 8, 4, 8));
    assert_eq!(
        two([0, 4], [4, 16]),
        "tensor a of F32 and shape [2] cannot lie in 4 bytes"
    );
    let one = refused_header(&format!("{{{}}}", entry("a", "[2]", [0, 8])), 16);
    assert_eq!(one, "its tensors end at byte 8 of 16");
}

#[test]
fn two_tensors_of_one_name() {
    let header = format!(
        "{{{},{}}}",
        entry("a", "[2]", [0, 8]),
        entry("a", "[2]", [8, 16])
    );
    let sentence = refused_header(&header, 16);
    assert!(sentence.contains("there are two tensors a"), "{sentence}");
}

#[test]
fn names_with_line_breaks_and_of_any_length() {
    let header = format!("{{{}}}", entry("a\\nb", "[2]", [0, 4]));
    assert_eq!(
        refused_header(&header, 4),
        "tensor a\\nb of F32 and shape [2] cannot lie in 4 bytes"
    );
    let longest = "a".repeat(1 << 16);
    let header = format!("{{{}}}", entry(&longest, "[3]", [0, 4]));
    let sentence = refused_header(&header, 4);
    assert!(sentence.starts_with("tensor aaa"), "it is read");
    let header = format!("{{{}}}", entry(&format!("{longest}a"), "[3]", [0, 4]));
    let sentence = refused_header(&header, 4);
    let said = "its header is damaged: it has a name of 65537 bytes, and at most 65536 are read";
    assert!(sentence.starts_with(said), "{sentence}");
}

#[test]
fn a_million_tensors() {
    let entries: Vec<String> = (0..1_000_000)
        .map(|at| entry(&at.to_string(), "[0]", [0, 0]))
        .collect();
    let sentence = refused_header(&format!("{{{}}}", entries.join(",")), 0);
    assert!(
        sentence.contains("it has more than 250000 tensors"),
        "{sentence}"
    );
}

#[test]
fn headers_that_are_something_else() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let dtype = "{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}";
    for header in [
        "{",
        "{}}",
        "{\"a\":3}",
        "{\"a\":{}}",
        "{\"\u{0}\":1}",
        &deep,
        dtype,
    ] {
        let sentence = refused_header(header, 4);
        assert!(
            sentence.starts_with("its header is damaged: "),
            "{sentence}"
        );
    }
    let not_utf8 = [&2u64.to_le_bytes()[..], b"{\"", b"\xff\xff"].concat();
    assert!(refused_bytes(&not_utf8).starts_with("its header"));
    // Metadata in any form is nothing to us.
    let metadata = safetensors("{\"__metadata__\":{\"a\":[1,{}]}}", &[]);
    let (_folder, path) = file("model.safetensors", metadata);
    assert_eq!(Weights::open(&path).expect("readable").tensors().count(), 0);
}

#[test]
fn no_file_of_weights() {
    assert_eq!(refused_bytes(b""), "the file is empty");
    assert!(refused_bytes(b"hello, world").contains("not a PyTorch checkpoint"));
    let folder = folder();
    assert!(refused(&folder.path().join("missing.safetensors")).contains("No such file"));
    assert!(refused(folder.path()).starts_with("the folder has none of model.safetensors, "));
    #[cfg(unix)]
    assert_eq!(refused(Path::new("/dev/zero")), "it is not a regular file");
}

/// A folder with two shards, and an index of these entries.
fn shards(index: &str) -> tempfile::TempDir {
    let folder = folder();
    let numbers = || (vec![2], vec![1.0, 2.0]);
    write(
        &folder.path().join("1.safetensors"),
        &[("a", numbers()), ("b", numbers())],
    );
    write(
        &folder.path().join("2.safetensors"),
        &[("b", numbers()), ("c", numbers())],
    );
    let index = format!("{{\"weight_map\":{{{index}}}}}");
    fs::write(folder.path().join("model.safetensors.index.json"), index).expect("written");
    folder
}

#[test]
fn shards_outside_the_folder() {
    let (_outside, path) = written(&[("a", (vec![2], vec![1.0, 2.0]))]);
    let absolute = path.display().to_string();
    for shard in [
        "../model.safetensors",
        "..",
        ".",
        "",
        "/",
        "sub/1.safetensors",
        "./1.safetensors",
        "..\\\\1",
        "1.safetensors/",
        &absolute,
    ] {
        let folder = shards(&format!("\"a\":\"{shard}\""));
        let sentence = refused(folder.path());
        assert!(
            sentence.ends_with("is not the name of a file beside it"),
            "{shard}: {sentence}"
        );
    }
}

#[test]
fn indices_that_do_not_fit_their_shards() {
    let cases = [
        (
            "\"a\":\"1.safetensors\",\"c\":\"2.safetensors\"",
            "tensor b is in 1.safetensors and in 2.safetensors",
        ),
        (
            "\"c\":\"1.safetensors\"",
            "tensor c is not in 1.safetensors",
        ),
        (
            "\"a\":\"1.safetensors\",\"a\":\"2.safetensors\"",
            "there are two tensors a",
        ),
        ("\"a\":\"3.safetensors\"", "No such file"),
        ("\"a\":3", "it is not an index of shards"),
        // An index of an index.
        (
            "\"a\":\"model.safetensors.index.json\"",
            "not a PyTorch checkpoint",
        ),
    ];
    for (index, expected) in cases {
        let sentence = refused(shards(index).path());
        assert!(sentence.contains(expected), "{sentence}");
    }
    let (folder, path) = file("model.safetensors.index.json", "{\"metadata\": {}}");
    assert!(refused(folder.path()).contains("missing field `weight_map`"));
    let opened = fs::File::options().write(true).open(&path).expect("opened");
    opened.set_len(100_000_001).expect("longer");
    let expected = "it has 100000001 bytes, and an index has at most 100000000";
    assert_eq!(refused(folder.path()), expected);
}

#[test]
fn an_index_of_far_too_many_tensors() {
    let index: Vec<String> = (0..250_001)
        .map(|at| format!("\"{at}\":\"1.safetensors\""))
        .collect();
    let said = refused(shards(&index.join(",")).path());
    assert!(said.contains("it has more than 250000 tensors"), "{said}");
}

#[test]
fn pickled_code_is_not_executed() {
    let folder = folder();
    let marker = folder.path().join("executed");
    let command = format!("touch {}", marker.display());
    // os.system(command), in protocol 2: its result in the place of a tensor, and alone.
    let call = [
        b"cposix\nsystem\nX".as_slice(),
        &(command.len() as u32).to_le_bytes(),
        command.as_bytes(),
        b"\x85R",
    ]
    .concat();
    let in_dictionary = [b"\x80\x02}X\x01\x00\x00\x00a".as_slice(), &call, b"s."].concat();
    let alone = [b"\x80\x02".as_slice(), &call, b"."].concat();
    let path = folder.path().join("pytorch_model.bin");
    let table = Table::new().row("vectors.0", "a");
    for bytes in [in_dictionary, alone] {
        fs::write(&path, bytes).expect("written");
        let result = Weights::open(&path)
            .and_then(|weights| weights.load(&table, &mut model(&[2], &[], &[])));
        let sentence = super::sentence(result);
        assert!(
            sentence.contains("cannot be read as weights") || sentence.contains("missing: a [2]")
        );
        assert!(!marker.exists(), "the pickle was executed");
    }
}

/// Loads `bytes` into a model, which must fit or be as it was.
fn load_any(path: &Path, bytes: &[u8], table: &Table) {
    fs::write(path, bytes).expect("written");
    let mut ours = filled(model(&[3, 5], &[[2, 7]], &[]), 1);
    let before = parameters::values(&ours);
    if Weights::open(path)
        .and_then(|weights| weights.load(table, &mut ours))
        .is_err()
    {
        assert!(parameters::values(&ours) == before, "the model has changed");
    }
}

#[test]
fn files_damaged_anywhere() {
    let table = Table::new()
        .row("vectors.{at}", "v.{at}")
        .row("matrices.0", "m");
    let any = |len: usize| (vec![len], vec![1.0; len]);
    let (_folder, path) = written(&[
        ("v.0", any(3)),
        ("v.1", any(5)),
        ("m", (vec![2, 7], vec![0.5; 14])),
    ]);
    assert_eq!(contents(&path).len(), 3);
    let whole = fs::read(&path).expect("read");
    for len in 0..whole.len() {
        load_any(&path, &whole[..len], &table);
        assert!(
            Weights::open(&path).is_err(),
            "{len} of {} bytes",
            whole.len()
        );
    }
    let numbers = whole.len() - 22 * 4;
    for at in 0..numbers {
        for byte in [0, 1, b'"', b'{', b'9', 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            load_any(&path, &bytes, &table);
        }
    }
}

#[test]
fn pytorch_files_damaged_anywhere() {
    let table = gpt2::table();
    let folder = folder();
    let path = folder.path().join("pytorch_model.bin");
    let whole = fs::read(golden("gpt2.bin")).expect("read");
    for len in (0..whole.len()).step_by(211) {
        load_any(&path, &whole[..len], &table);
        assert!(
            Weights::open(&path).is_err(),
            "{len} of {} bytes",
            whole.len()
        );
    }
    for at in (0..whole.len()).step_by(37) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        load_any(&path, &bytes, &table);
    }
}

#[test]
fn burnpacks_damaged_anywhere() {
    let table = Table::new()
        .row("vectors.{at}", "vectors.{at}")
        .row("matrices.0", "matrices.0");
    let folder = folder();
    let whole = folder.path().join("whole.bpk");
    filled(model(&[3, 5], &[[2, 7]], &[]), 2)
        .save_file(&whole)
        .expect("saved");
    let whole = fs::read(whole).expect("read");
    let path = folder.path().join("model.bpk");
    for len in 0..whole.len() {
        load_any(&path, &whole[..len], &table);
    }
    let metadata = whole
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last.min(600));
    for at in 0..metadata {
        for byte in [0, 0x1b, 0x5f, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            load_any(&path, &bytes, &table);
        }
    }
}

//! A user's own kernel, from three compilers, with a scenario and numpy's arrays in a folder that has nothing to do with this project.

use std::fs;
use std::path::Path;

use crate::{Answer, assert_fails, warpwave_in};

/// Elements: no multiple of a block.
const N: usize = 3001;

/// An array as `numpy.save` writes it, version 1.0.
fn npy(values: &[f32]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
        values.len()
    );
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(padded.bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn build(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A folder with the kernel, two inputs (one of them made by the scenario itself), and what must come out.
fn project(ptx: &str, launch: &str, sums: &[f32]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let a: Vec<f32> = (0..N).map(|n| n as f32 * 0.25 - 300.0).collect();
    let scenario = format!(
        "ptx = \"kernels/add.ptx\"\n\
         [buffers.a]\ndtype = \"f32\"\nshape = [{N}]\ninit = {{ npy = \"data/a.npy\" }}\n\
         [buffers.b]\ndtype = \"f32\"\nshape = [{N}]\ninit = {{ iota = {{ start = 5, step = 3 }} }}\n\
         [buffers.sum]\ndtype = \"f32\"\nshape = [{N}]\nexpect = {{ npy = \"data/sum.npy\" }}\ninit = \"zeros\"\n\
         [[launch]]\n{launch}\n"
    );
    for inner in ["kernels", "data"] {
        fs::create_dir(folder.path().join(inner)).unwrap();
    }
    fs::write(folder.path().join("kernels/add.ptx"), ptx).unwrap();
    fs::write(folder.path().join("data/a.npy"), npy(&a)).unwrap();
    fs::write(folder.path().join("data/sum.npy"), npy(sums)).unwrap();
    fs::write(folder.path().join("add.toml"), scenario).unwrap();
    folder
}

fn run(folder: &Path) -> Answer {
    warpwave_in(folder, &["run", "add.toml", "--gpu", "tiny", "--dump", "out"])
}

#[test]
fn kernel_of_any_compiler_outside_of_the_project_is_checked_run_and_judged() {
    let sums: Vec<f32> = (0..N).map(|n| (n as f32 * 0.25 - 300.0) + (5 + 3 * n) as f32).collect();
    let mut wrong = sums.clone();
    wrong[2999] += 1.0;
    let arguments = format!("\"a\", \"b\", \"sum\", {{ i32 = {N} }}");
    let nvcc = format!("entry = \"vector_add\"\ngrid = 12\nblock = 256\nargs = [{arguments}]");
    let triton = format!("grid = 3\nblock = 128\nargs = [{arguments}, {{ u64 = 0 }}, {{ u64 = 0 }}]");
    let builds = [
        ("scenarios/vector_add/vector_add.ptx", &nvcc),
        ("corpus/ptx/clang19-sm_80/vector_add.ptx", &nvcc),
        ("scenarios/triton/vector_add.ptx", &triton),
    ];
    for (path, launch) in builds {
        let ptx = build(path);
        let folder = project(&ptx, launch, &sums);
        let checked = warpwave_in(folder.path(), &["check", "kernels/add.ptx"]);
        assert_eq!(checked.code, 0, "{path}: {}", checked.err);
        assert!(checked.out.contains("\nvector_add "), "{path}: {}", checked.out);
        let answer = run(folder.path());
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{path}");
        assert_eq!(
            fs::read(folder.path().join("out/sum.npy")).unwrap(),
            npy(&sums),
            "{path}"
        );
        let answer = run(project(&ptx, launch, &wrong).path());
        let says = format!(
            "expect: sum[2999] is {}, not {}; 1 of {N} elements differ",
            sums[2999], wrong[2999]
        );
        assert_fails(&answer, 1, &[&says]);
    }
}

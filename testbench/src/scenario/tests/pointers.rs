//! Tests of addresses, structures, permutations, rings and sparse matrices.

use super::load;
use crate::scenario::dtype::Dtype;
use crate::scenario::{Arg, CheckedData, Pointers, Scenario, Target};

/// A scenario with these buffers and arguments.
fn scenario(buffers: &str, args: &str) -> Result<Scenario, String> {
    let text = format!(
        "ptx = \"k.ptx\"\nconstants = {{ n = 4 }}\n{buffers}\n[[launch]]\ngrid = 1\nblock = 1\nargs = [{args}]\n"
    );
    load(&text, &[])
}

fn refused(buffers: &str) -> String {
    scenario(buffers, "").unwrap_err()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| u64::from_le_bytes(bytes))
        .collect()
}

const X: &str = "[buffers.x]\ndtype = \"f32\"\nshape = [16]\n";

#[test]
fn argument_is_an_address_with_an_offset() {
    let args = "{ address = \"x\" }, { offset = \"4 * n\", address = \"x\" }, { address = \"table\", offset = 8 }";
    let found = scenario(X, args).unwrap().launches[0].args.clone();
    let variable = Target::Variable("table".to_owned());
    assert_eq!(
        found,
        [
            Arg::Address(Target::Buffer(0), 0),
            Arg::Address(Target::Buffer(0), 16),
            Arg::Address(variable, 8)
        ]
    );
    let behind = scenario(X, "{ address = \"x\", offset = 65 }").unwrap_err();
    assert_eq!(
        behind,
        "s.toml: launch[0].args: `65` is 65; give a whole number from 0 to 64"
    );
    assert!(
        scenario(X, "{ offset = 4 }")
            .unwrap_err()
            .contains("missing field `address`")
    );
    let other = scenario(X, "{ address = \"x\", ofset = 4 }").unwrap_err();
    assert!(other.ends_with("did you mean `offset`?"), "{other}");
}

#[test]
fn elements_are_addresses_of_one_buffer_or_of_a_list() {
    let rows = "[buffers.rows]\ndtype = \"u64\"\nshape = [4]\ninit = { address = \"x\", offset = \"16 * i\" }\n";
    let found = scenario(&format!("{X}{rows}"), "").unwrap();
    assert_eq!(words(&found.buffers[0].init), [0, 16, 32, 48]);
    let pointers = |data, at: &[u64], to| Pointers {
        data: CheckedData::Buffer(data),
        at: at.to_vec(),
        to,
    };
    assert_eq!(found.pointers, [pointers(0, &[0, 8, 16, 24], Target::Buffer(1))]);

    let list = "[buffers.list]\ndtype = \"u64\"\nshape = [3]\n\
                init = { addresses = [\"x\", { address = \"table\", offset = 4 }, { address = \"x\", offset = \"2 * n\" }] }\n";
    let found = scenario(&format!("{X}{list}"), "").unwrap();
    assert_eq!(words(&found.buffers[0].init), [0, 4, 8]);
    let variable = Target::Variable("table".to_owned());
    assert_eq!(
        found.pointers,
        [pointers(0, &[0, 16], Target::Buffer(1)), pointers(0, &[8], variable)]
    );

    let behind = rows.replace("16 * i", "20 * i + 5");
    assert_eq!(
        refused(&format!("{X}{behind}")),
        "s.toml: buffers.rows.init: element 3: an offset of 65 bytes is outside `x`, which has 64"
    );
    assert_eq!(
        refused(&format!("{X}{}", rows.replace("u64", "u32"))),
        "s.toml: buffers.rows.init: an address has 64 bits, which u32 cannot hold; take u64"
    );
    assert_eq!(
        refused(&format!("{X}{}", list.replace("[3]", "[2]"))),
        "s.toml: buffers.list.init: 3 values for a buffer of 2 elements; give one per element"
    );
}

#[test]
fn table_with_two_sources_or_an_offset_alone_is_refused() {
    for init in [
        "fill = 1, iota = {}",
        "offset = 4",
        "fill = 1, offset = 4",
        "address = \"x\", fill = 0",
    ] {
        let found = refused(&X.replace("[16]\n", &format!("[16]\ninit = {{ {init} }}\n")));
        assert!(found.contains("give exactly one of npy, fill, iota"), "{init}: {found}");
    }
}

#[test]
fn ring_has_indices_or_addresses_of_the_successors() {
    let ring =
        |rest: &str| format!("[buffers.r]\ndtype = \"u64\"\nshape = [64]\ninit = {{ ring = {{ seed = 3{rest} }} }}\n");
    let chase = |next: &[u64], first: u64, size: u64| {
        let mut at = first;
        let mut n = 0;
        loop {
            at = next[(at / size) as usize];
            n += 1;
            if at == first || n > 64 {
                return n;
            }
        }
    };
    let all = scenario(&ring(""), "").unwrap();
    assert_eq!(chase(&words(&all.buffers[0].init), 0, 1), 64);
    assert!(all.pointers.is_empty());
    let some = scenario(&ring(", step = 16, addresses = true"), "").unwrap();
    assert_eq!(chase(&words(&some.buffers[0].init), 0, 8), 4);
    assert_eq!(some.pointers[0].at, [0, 128, 256, 384]);
    assert_eq!(some.pointers[0].to, Target::Buffer(0));
    let bytes = ring("").replace("u64", "u8").replace("[64]", "[300]");
    assert!(refused(&bytes).contains("u8 cannot hold"));
}

#[test]
fn fields_of_a_structure_have_elements_and_expectations_of_their_own() {
    let nodes = "[buffers.nodes]\nshape = [\"n\"]\nfields = [\n\
                 { name = \"value\", dtype = \"f32\", init = \"i\", expect = \"nodes.value + 1\" },\n\
                 { name = \"next\", dtype = \"u64\", init = { address = \"nodes\", offset = \"16 * ((i + 1) % n)\" } },\n]\n";
    let found = scenario(nodes, "\"nodes\"").unwrap();
    let buffer = &found.buffers[0];
    assert_eq!(
        (buffer.layout.dtype, &buffer.layout.shape[..]),
        (Dtype::U8, &[4, 16][..])
    );
    let values = buffer
        .init
        .chunks(16)
        .map(|node| f32::from_le_bytes(node[..4].try_into().unwrap()));
    assert_eq!(values.collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0]);
    let next: Vec<u64> = words(&buffer.init).into_iter().skip(1).step_by(2).collect();
    assert_eq!(next, [16, 32, 48, 0]);
    assert_eq!(found.pointers[0].at, [8, 24, 40, 56]);
    let check = &found.checks[0];
    assert_eq!(check.field.as_ref().unwrap().name, "nodes.value");
    assert_eq!(check.want.as_ref().unwrap().len(), 16);
    assert_eq!(found.expectations(), 1);

    assert_eq!(
        refused(&nodes.replace("nodes.value + 1", "nodes.next")),
        "s.toml: buffers.nodes.value.expect: element 0: nothing is named `nodes.next` here"
    );
    assert_eq!(
        refused(&nodes.replace("shape", "dtype = \"u8\"\nshape")),
        "s.toml: buffers.nodes.shape: give either dtype, or fields without init and expect"
    );
    assert_eq!(
        refused("[buffers.x]\nshape = [1]"),
        "s.toml: buffers.x.shape: give either dtype, or fields without init and expect"
    );
    assert_eq!(
        refused(&nodes.replace("buffers", "globals").replace("nodes.value + 1", "1")),
        "s.toml: globals.nodes: a module variable has no fields; give dtype and shape of its bytes"
    );
}

#[test]
fn sparse_matrix_fills_the_buffers_of_its_parts() {
    let text = "[matrices.a]\nrows = \"n\"\ncolumns = 8\nnonzeros = \"3 * n\"\n\
                [buffers.offsets]\ndtype = \"i32\"\nshape = [\"n + 1\"]\ninit = { csr = \"a.offsets\" }\n\
                [buffers.columns]\ndtype = \"i32\"\nshape = [12]\ninit = { csr = \"a.columns\" }\n";
    let found = scenario(text, "").unwrap();
    let numbers = |n: usize| -> Vec<i32> {
        let bytes = found.buffers[n].init.as_chunks().0.iter();
        bytes.map(|&bytes| i32::from_le_bytes(bytes)).collect()
    };
    assert_eq!(numbers(1), [0, 3, 6, 9, 12]);
    for row in numbers(0).chunks(3) {
        assert!(row.is_sorted_by(|a, b| a < b) && row.iter().all(|column| (0..8).contains(column)));
    }
    assert_eq!(
        refused(&text.replace("[12]", "[11]")),
        "s.toml: buffers.columns.init: `a.columns` has 12 elements, but the buffer has 11; change its shape"
    );
    assert_eq!(
        refused(&text.replace("\"a.columns\"", "\"b.columns\"")),
        "s.toml: buffers.columns.init: no matrix has the part `b.columns`; write NAME.offsets or NAME.columns for a table \
         [matrices.NAME]; did you mean `a`?"
    );
    assert!(refused(&text.replace("\"3 * n\"", "33")).contains("`33` is 33; give a whole number from 1 to 32"));
}

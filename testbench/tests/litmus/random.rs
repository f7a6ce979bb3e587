//! Random small programs: the machine shows only outcomes that the checker allows.

use fastrand::Rng;
use warpwave_components::preset;

use super::axioms::allowed;
use super::machine::{DELAYS, LAYOUTS, Trial, outcomes};
use super::reader::read;
use super::suite::FAR_COPIES;

/// Programs per run, unless `WARPWAVE_LITMUS_PROGRAMS` has another number.
const PROGRAMS: u64 = 150;

const SCOPES: &[&str] = &["cta", "cluster", "gpu", "sys"];

fn pick<'a>(random: &mut Rng, of: &[&'a str]) -> &'a str {
    of[random.usize(..of.len())]
}

/// An access of `x` or `y`. Every store has a value of its own.
fn access(random: &mut Rng, register: usize, value: usize) -> String {
    let at = pick(random, &["x", "y"]);
    let scope = pick(random, SCOPES);
    match random.u32(0..10) {
        0 => format!("ld.weak r{register}, [{at}]"),
        1 => format!("ld.volatile r{register}, [{at}]"),
        2 => format!("ld.relaxed.{scope} r{register}, [{at}]"),
        3 => format!("ld.acquire.{scope} r{register}, [{at}]"),
        4 => format!("st.weak [{at}], {value}"),
        5 => format!("st.relaxed.{scope} [{at}], {value}"),
        6 => format!("st.release.{scope} [{at}], {value}"),
        7 => format!(
            "red.{}.{scope}.add [{at}], {value}",
            pick(random, &["relaxed", "release"])
        ),
        _ => {
            let order = pick(random, &["relaxed", "acquire", "release", "acq_rel"]);
            match random.bool() {
                true => format!("atom.{order}.{scope}.exch r{register}, [{at}], {value}"),
                false => format!("atom.{order}.{scope}.cas r{register}, [{at}], 0, {value}"),
            }
        }
    }
}

/// The place of a thread. Threads of a cluster program are in two CTAs of one cluster.
fn place(random: &mut Rng, n_threads: usize, in_cluster: bool) -> String {
    match random.u32(0..4) {
        _ if in_cluster => format!("cta {},cluster 0,gpu 0", random.usize(0..2)),
        0 => "warp 0,cta 0,gpu 0".to_owned(),
        _ => format!("cta {},gpu 0", random.usize(0..n_threads)),
    }
}

/// Inserts an instruction in each of these columns, anywhere below the place of the thread and below row `from` of the column. Returns
/// its rows.
fn insert(
    random: &mut Rng,
    columns: &mut [Vec<String>],
    members: &[(usize, usize)],
    inst: &str,
) -> Vec<(usize, usize)> {
    let rows = members.iter().map(|&(column, from)| {
        let row = random.usize(from + 1..=columns[column].len());
        columns[column].insert(row, inst.to_owned());
        (column, row)
    });
    rows.collect()
}

/// Adds barriers that all their threads pass. One of two cluster programs has that of the cluster. Of the other programs, one of three CTAs
/// has that of the CTA. With both, threads could pass them in different orders and block each other.
fn add_barriers(random: &mut Rng, columns: &mut [Vec<String>], in_cluster: bool) {
    if in_cluster && random.bool() {
        let all: Vec<_> = (0..columns.len()).map(|n| (n, 0)).collect();
        let arrivals = insert(random, columns, &all, "barrier.cluster.arrive");
        insert(random, columns, &arrivals, "barrier.cluster.wait");
        return;
    }
    // A program with threads of one warp leaves lanes of other warps idle. A barrier would wait for those.
    if columns.iter().any(|column| column[0].contains("warp")) {
        return;
    }
    for cta in 0..columns.len() {
        let name = format!("cta {cta},");
        let of_cta = (0..columns.len()).filter(|&n| columns[n][0].contains(&name));
        let members: Vec<_> = of_cta.map(|n| (n, 0)).collect();
        if random.u32(0..3) == 0 {
            insert(random, columns, &members, "bar.sync 0");
        }
    }
}

/// The text of a random program of two or three threads, with two or three accesses each, and fences and barriers between them.
fn program(seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let n_threads = random.usize(2..4);
    let in_cluster = random.u32(0..4) == 0;
    let mut columns: Vec<Vec<String>> = Vec::new();
    for thread in 0..n_threads {
        let mut column = vec![format!("P{thread}@{}", place(&mut random, n_threads, in_cluster))];
        for n in 0..random.usize(2..4) {
            if n > 0 && random.u32(0..3) == 0 {
                let order = pick(&mut random, &["sc", "acq_rel"]);
                column.push(format!("fence.{order}.{}", pick(&mut random, SCOPES)));
            }
            column.push(access(&mut random, n, 1 << (4 * thread + n)));
        }
        columns.push(column);
    }
    add_barriers(&mut random, &mut columns, in_cluster);
    let rows = columns.iter().map(Vec::len).max().unwrap();
    let cell = |column: &Vec<String>, row: usize| column.get(row).cloned().unwrap_or_default();
    let line = |row: usize| {
        let cells: Vec<String> = columns.iter().map(|column| cell(column, row)).collect();
        format!(" {} ;\n", cells.join(" | "))
    };
    let table: String = (0..rows).map(line).collect();
    format!("PTX random-{seed}\n{{ x=0; y=0; }}\n{table}exists (x=0)\n")
}

#[test]
fn random_programs_have_every_scope_and_barrier() {
    let texts: Vec<String> = (0..PROGRAMS).map(program).collect();
    for part in [
        ".cta",
        ".cluster r",
        ".gpu",
        ".sys",
        "fence.sc.cluster",
        "warp 0",
        "cluster 0",
        "bar.sync 0",
    ] {
        let n = texts.iter().filter(|text| text.contains(part)).count();
        assert!(n >= 5, "{n} programs with {part}");
    }
    let of_cluster = |text: &&String| text.contains("barrier.cluster.arrive") && text.contains("barrier.cluster.wait");
    assert!(texts.iter().filter(of_cluster).count() >= 5);
}

#[test]
fn random_programs_show_only_allowed_outcomes() {
    let given = std::env::var("WARPWAVE_LITMUS_PROGRAMS");
    let programs = given.map_or(PROGRAMS, |text| {
        text.parse().expect("WARPWAVE_LITMUS_PROGRAMS is a number")
    });
    let settings = |weak: &'static str, more: &[(&'static str, &'static str)]| {
        let all = more.iter().copied().chain([("check.weak", weak)]);
        let all: Vec<_> = all.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        preset::load("tiny", &all).unwrap().config
    };
    let machines = [("0", &[][..]), ("600", &[]), ("0", &FAR_COPIES), ("600", &FAR_COPIES)];
    let machines = machines.map(|(weak, more)| settings(weak, more));
    let mut wrong = Vec::new();
    let mut instances = 0;
    for seed in 0..programs {
        let text = program(seed);
        let program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let allowed = allowed(&program);
        for n in 0..4 {
            let config = &machines[n as usize];
            let trial = Trial {
                layout: LAYOUTS[(seed + n) as usize % LAYOUTS.len()],
                delays: DELAYS[(seed / 5 + n) as usize % DELAYS.len()],
                seed: 4 * seed + n,
                warps: 8,
                rounds: 1,
            };
            let seen = outcomes(&program, config, trial);
            instances += seen.len();
            let forbidden = seen.iter().find(|outcome| !allowed.contains(*outcome));
            wrong.extend(
                forbidden.map(|outcome| format!("{trial:?}, {:?}\n{text}{}", config.check, program.show(outcome))),
            );
        }
    }
    assert!(
        instances as u64 >= 32 * programs,
        "{instances} instances of {programs} programs"
    );
    assert!(wrong.is_empty(), "{} forbidden\n{}", wrong.len(), wrong.join("\n\n"));
}

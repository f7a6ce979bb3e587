//! Builds again when a built-in scenario comes or goes: the compiler itself sees only changes of those it knows.

fn main() {
    println!("cargo::rerun-if-changed=scenarios");
}

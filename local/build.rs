//! Recompiles the package when a file in `events/` or `docs/records/` changes, which `include_dir!` does not do.

fn main() {
    println!("cargo::rerun-if-changed=../events");
    println!("cargo::rerun-if-changed=../docs/records");
}

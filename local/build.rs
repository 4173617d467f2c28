//! Recompiles the package when a file in `events/` changes, which `include_dir!` does not do.

fn main() {
    println!("cargo::rerun-if-changed=../events");
}

//! Environment variables that are set and empty.

/// Makes the empty variables of AWS and of this program unset. The SDK and clap would use their
/// empty values. Must be called before the program does anything, because it starts the program
/// again: `std::env::remove_var` is unsafe.
#[cfg(unix)]
pub fn unset_empty_variables() {
    use std::{env, os::unix::process::CommandExt as _, process::Command};

    let mut empty_names = Vec::new();
    for (name, value) in env::vars_os() {
        let text = name.to_string_lossy();
        let prefixes = ["AWS_", "SSL_CERT_", "WORKSPACECTL_"];
        if value.is_empty() && prefixes.iter().any(|prefix| text.starts_with(prefix)) {
            empty_names.push(name);
        }
    }
    let mut arguments = env::args_os();
    let (Ok(program), Some(name), false) =
        (env::current_exe(), arguments.next(), empty_names.is_empty())
    else {
        return;
    };
    let mut command = Command::new(program);
    command.arg0(name).args(arguments);
    for name in empty_names {
        command.env_remove(name);
    }
    // Returns only if the program cannot be started.
    let _ = command.exec();
}

/// Does nothing, because Windows has no empty variables.
#[cfg(not(unix))]
pub fn unset_empty_variables() {}

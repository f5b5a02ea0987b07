//! Manual pages, and completions for shells, from the definition of the command line.
//!
//! The program writes both itself: a package runs it once, and so can a user of `cargo install`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// The name of the manual that the pages belong to.
const MANUAL: &str = "Refrain";

/// Writes the completions of `shell` to `out`.
pub(crate) fn completions(mut command: Command, shell: Shell, out: &mut dyn Write) {
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, out);
}

/// Writes a page for the program and one for each subcommand to `dir`, which is made if it is not
/// there.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn pages(command: Command, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default();
    let source = format!("{} {version}", command.get_name());
    for one in std::iter::once(&command).chain(command.get_subcommands()) {
        let page = Man::new(one.clone()).source(&*source).manual(MANUAL);
        let mut file = File::create(dir.join(page.get_filename()))?;
        write_page(&page, one, &mut file)?;
        file.flush()?;
    }
    Ok(())
}

fn write_page(page: &Man, command: &Command, out: &mut dyn Write) -> io::Result<()> {
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    if let Some(examples) = command.get_after_help() {
        write_examples(&examples.to_string(), out)?;
    }
    Ok(())
}

/// Writes the text behind the options as it is: its lines are commands.
fn write_examples(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    // The heading of the section says the first line.
    for line in text.lines().skip(1) {
        roff.text([roman(line)]);
    }
    roff.control("fi", []).to_writer(out)
}

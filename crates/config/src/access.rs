//! Reads the rules by which clients log in: from the options themselves, or from the files that
//! they name.

use std::path::Path;

use crate::general::General;
use crate::hba::{self, Groups, Hba, Source, Texts};
use crate::machine::Machine;

/// Reads rules and maps. Returns each problem with the option that it belongs to.
pub(crate) fn read(
    general: &General,
    groups: &Groups,
    machine: &dyn Machine,
) -> Result<Hba, Vec<(&'static str, String)>> {
    let mut problems = Vec::new();
    let mut source = |text: Option<&String>, file: Option<&Path>, option| match (text, file) {
        (Some(text), _) => Some(Source { file: None, text: text.clone() }),
        (None, Some(path)) => match machine.read(path) {
            Ok(text) => Some(Source { file: Some(path.into()), text }),
            Err(error) => {
                let name = path.display();
                problems.push((option, format!("could not open file \"{name}\": {error}")));
                None
            }
        },
        (None, None) => None,
    };
    let rules = source(general.hba.as_ref(), general.hba_file.as_deref(), "hba_file");
    let maps = source(general.ident.as_ref(), general.ident_file.as_deref(), "ident_file");
    if !problems.is_empty() {
        return Err(problems);
    }
    let option = |source: &Option<Source>, text, file| match source {
        Some(Source { file: Some(_), .. }) => file,
        _ => text,
    };
    let of_rules = option(&rules, "hba", "hba_file");
    let of_maps = option(&maps, "ident", "ident_file");
    hba::read(&Texts { rules, maps }, groups, machine).map_err(|(in_rules, in_maps)| {
        let in_rules = in_rules.into_iter().map(|problem| (of_rules, problem));
        let in_maps = in_maps.into_iter().map(|problem| (of_maps, problem));
        in_rules.chain(in_maps).collect()
    })
}

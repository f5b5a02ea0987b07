//! Groups of users, by list: Refrain has no catalog to ask for the members of a role.

use std::collections::{BTreeMap, BTreeSet};

/// The groups of `[groups]`, each with its members. A member may be a group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Groups(pub(crate) BTreeMap<String, Vec<String>>);

impl Groups {
    /// Whether there is such a group.
    pub fn has(&self, group: &str) -> bool {
        self.0.contains_key(group)
    }

    /// Whether a user is a member of a group, directly or through another group. As in PostgreSQL,
    /// a name is a member of itself.
    pub fn is_member(&self, user: &str, group: &str) -> bool {
        let mut seen = BTreeSet::from([group]);
        let mut ahead = vec![group];
        while let Some(group) = ahead.pop() {
            if group == user {
                return true;
            }
            let members = self.0.get(group).into_iter().flatten().map(String::as_str);
            ahead.extend(members.filter(|member| seen.insert(member)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_through_groups_and_in_circles() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let groups = Groups(BTreeMap::from([
            ("staff".to_owned(), list(&["ann", "admins"])),
            ("admins".to_owned(), list(&["bob", "staff"])),
            ("empty".to_owned(), list(&[])),
        ]));
        for (user, group, member) in [
            ("ann", "staff", true),
            ("bob", "staff", true),
            ("ann", "admins", true),
            ("cid", "staff", false),
            ("staff", "staff", true),
            ("ann", "empty", false),
            ("ann", "nowhere", false),
        ] {
            assert_eq!(groups.is_member(user, group), member, "{user} in {group}");
        }
    }
}

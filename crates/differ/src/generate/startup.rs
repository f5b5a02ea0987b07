//! Start-up packets: parameters, and `options` in all of its grammar.

use super::Generator;

/// Values of `options`: settings in each way in which PostgreSQL reads them, switches of its
/// command line, and what PostgreSQL refuses.
const OPTIONS: &[&str] = &[
    "-c work_mem=5MB",
    "-cwork_mem=6MB",
    "--work_mem=7MB",
    "--work-mem=7MB",
    "  -c   work_mem=5MB  ",
    "-c statement_timeout=17s -c work_mem=5MB",
    "-c work_mem=5MB -c work_mem=6MB",
    "-c search_path=shr,public",
    "-c search_path=shr,\\ public",
    "-c application_name=a\\ \\\\b",
    "-c datestyle=German",
    "-c geqo=off",
    "--geqo=off",
    "-c app.t=3",
    "-c app.t=",
    "-S 5000",
    "-S5000",
    "-e",
    "-fs",
    "-f s -f i",
    "-tpl",
    "-O",
    "-P",
    "",
    " ",
    "-c statement_timeout = 5s",
    "-c foo",
    "-c",
    "--geqo",
    "--",
    "-",
    "garbage",
    "-c work_mem=5MB garbage",
    "-x",
    "-fx",
    "-tx",
    "-S",
    "-S x",
    "-c nosuch=1",
    "-c work_mem=bogus",
    "-c shared_buffers=1GB",
    "-B 100",
    "-F",
    "-c client_encoding=LATIN1",
    "-c client_encoding=nosuch",
    "-c role=nosuch",
];

/// Values of `options` that choose a role.
const ROLES: &[&str] =
    &["-c role=diff_role", "-c role=diff_role -c work_mem=5MB", "-c role=none", "--role=diff_role"];

impl Generator {
    /// Returns a client's start-up parameters besides user and database.
    pub fn startup(&mut self) -> Vec<(String, String)> {
        let mut params = Vec::new();
        let mut add =
            |name: &str, value: &&str| params.push((name.to_owned(), (*value).to_owned()));
        if self.features.has("startup-params") && self.rng.chance(40) {
            if self.rng.chance(50) {
                add("application_name", self.rng.pick(&["differ", "o'clock", ""]));
            }
            if self.rng.chance(30) {
                add("DateStyle", self.rng.pick(&["ISO, DMY", "SQL, MDY"]));
            }
            if self.rng.chance(30) {
                add("TimeZone", self.rng.pick(&["Asia/Tokyo", "UTC"]));
            }
            if self.rng.chance(30) {
                add("client_encoding", self.rng.pick(&["UTF8", "LATIN1"]));
            }
        }
        if self.features.has("startup-unreported") && self.rng.chance(30) {
            add("work_mem", self.rng.pick(&["6MB", "7MB"]));
        }
        if self.features.has("startup-options") && self.rng.chance(40) {
            add("options", self.rng.pick(OPTIONS));
        } else if self.features.has("startup-role") && self.rng.chance(40) {
            add("options", self.rng.pick(ROLES));
        }
        params
    }
}

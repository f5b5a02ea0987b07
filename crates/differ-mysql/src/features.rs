//! Parts of the generator that `--with` and `--without` switch by name.

use refrain_differ::features::{Feature, feature};

/// All features.
pub const FEATURES: [Feature; 20] = [
    feature("writes", true, "INSERT, UPDATE, DELETE, REPLACE, TRUNCATE of the client's own tables"),
    feature(
        "transactions",
        true,
        "transactions, chained and released, savepoints, SET TRANSACTION",
    ),
    feature("settings", true, "SET of variables, names and character sets, right and wrong"),
    feature("tracking", true, "SET of session_track_* variables"),
    feature("ddl", true, "CREATE, ALTER and DROP of the client's own tables"),
    feature("prepared", true, "prepared statements of the protocol"),
    feature("cursors", true, "cursors of prepared statements, and values in parts"),
    feature("calls", true, "procedures and functions, some of which change the session"),
    feature("fails", true, "routines and a trigger that change the session and fail"),
    feature("several", true, "several statements in a text, with errors among them"),
    feature("asks", true, "questions about the statement before"),
    feature("schemas", true, "USE and COM_INIT_DB"),
    feature("resets", true, "COM_RESET_CONNECTION, COM_CHANGE_USER and COM_SET_OPTION"),
    feature(
        "pins",
        true,
        "what keeps a server: temporary tables, user variables, locks, handlers, …",
    ),
    feature("files", true, "LOAD DATA LOCAL INFILE"),
    feature("odd", true, "unknown and malformed commands, statements that are not there"),
    feature("large", true, "texts, results and values beyond 64 KiB"),
    feature("huge", false, "the same beyond 16 MiB"),
    feature("burst", true, "steps of several clients in flight at once"),
    feature("reconnect", true, "clients that leave, politely or not, and come back"),
];

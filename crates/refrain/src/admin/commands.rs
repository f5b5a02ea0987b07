//! The commands of the console.

use std::sync::{Arc, mpsc};

use refrain_config::{Database, nearest};
use refrain_pg::console::split;
use refrain_pool::event::Command;
use refrain_pool::ids::ClientSerial;
use refrain_pool::snapshot::Extent;

use super::asked::{Answer, Asked, Outcome, done};
use super::pg::{autoprepare, cache};
use super::set;
use super::show::{ALL, LISTINGS, SETTINGS};
use super::table::Show;
use super::words::{self, Word};
use super::{Desk, PAUSE, SNAPSHOT_TIMEOUT, Wait};
use crate::console::{Part, Question, Refusal, Table};
use crate::supervisor::SupervisorCommand;

/// A command, by its first word.
pub(super) struct Entry {
    name: &'static str,
    /// True if the command needs a user of `admin_users`. Such a command shows no rows; every
    /// other takes no effect, so a client that asks for its columns runs it.
    admin: bool,
    /// The command's form, for `SHOW HELP`; empty for commands that exist for drivers alone.
    usage: &'static str,
    run: fn(&mut Desk, &Asked<'_>, &[Word]) -> Answer,
}

/// The beginnings of commands that have a query of PostgreSQL's behind them.
const EXPLAIN_AUTOPREPARE: &[&str] = &["explain", "autoprepare"];
const EXPLAIN_CACHE: &[&str] = &["explain", "cache"];

const FLUSH: &str = "FLUSH AUTH|AUTOPREPARE|CACHE [DATABASE <db>|RULE <rule>|STATEMENT '<sql>'|\
                     TABLE <table>|TAG <tag>]";

/// The message for a Parse of several commands, with PostgreSQL's words.
const ONE_PREPARED: &str = "cannot insert multiple commands into a prepared statement";
/// The commands whose reply may have to wait.
const WAITING: [&str; 2] = ["pause", "wait_close"];
const WAITS_ALONE: &str = "PAUSE and WAIT_CLOSE take a query of their own";

pub(super) const COMMANDS: &[Entry] = &[
    Entry { name: "show", admin: false, usage: "", run: show },
    Entry { name: "select", admin: false, usage: "SELECT … FROM <listing> …", run: select },
    Entry { name: "with", admin: false, usage: "", run: with },
    // Refuses by itself those who are no admins: drivers set things too.
    Entry { name: "set", admin: false, usage: "SET <key> = <value>", run: set::set },
    Entry { name: "reset", admin: false, usage: "", run: reset },
    Entry { name: "discard", admin: false, usage: "", run: discard },
    Entry { name: "deallocate", admin: false, usage: "", run: deallocate },
    Entry { name: "close", admin: false, usage: "", run: close },
    Entry { name: "unlisten", admin: false, usage: "", run: unlisten },
    Entry { name: "reload", admin: true, usage: "RELOAD", run: reload },
    Entry { name: "pause", admin: true, usage: "PAUSE [<db>]", run: pause },
    Entry { name: "resume", admin: true, usage: "RESUME [<db>]", run: resume },
    Entry { name: "reconnect", admin: true, usage: "RECONNECT [<db>]", run: reconnect },
    Entry { name: "wait_close", admin: true, usage: "WAIT_CLOSE [<db>]", run: wait_close },
    Entry { name: "kill", admin: true, usage: "KILL [<db>]", run: kill },
    Entry { name: "kill_client", admin: true, usage: "KILL_CLIENT <client_id>", run: kill_client },
    Entry { name: "explain", admin: false, usage: "EXPLAIN AUTOPREPARE|CACHE <sql>", run: explain },
    Entry { name: "flush", admin: true, usage: FLUSH, run: flush },
    Entry {
        name: "shutdown",
        admin: true,
        usage: "SHUTDOWN [WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS]",
        run: shutdown,
    },
    Entry { name: "disable", admin: true, usage: "DISABLE <db>", run: disable },
    Entry { name: "enable", admin: true, usage: "ENABLE <db>", run: enable },
    Entry { name: "suspend", admin: true, usage: "", run: unsupported },
];

/// Carries out the commands of a query, up to the first that is refused.
pub(super) fn run(desk: &mut Desk, question: &Question) -> Outcome {
    // The text behind EXPLAIN is a query, which is not split into commands or words.
    let explains = |beginning| words::behind(&question.query, beginning).is_some();
    let explained = explains(EXPLAIN_AUTOPREPARE) || explains(EXPLAIN_CACHE);
    let one = |query| Asked {
        user: &question.user,
        admin: question.admin,
        describes: question.describes,
        query,
    };
    let commands = split::commands(&question.query);
    match &commands[..] {
        _ if explained => answer(desk, &one(&question.query), "explain").unwrap_or_else(refused),
        [] => Outcome::Reply(vec![Part::Nothing]),
        [query] => answer(desk, &one(query), query).unwrap_or_else(refused),
        _ if question.describes => refused(Refusal::new("42601", ONE_PREPARED)),
        several => run_several(desk, several.iter().map(|query| one(query))),
    }
}

/// Carries out commands that stand in one query.
fn run_several<'q>(desk: &mut Desk, commands: impl Iterator<Item = Asked<'q>> + Clone) -> Outcome {
    let first = |query| words::split(query).ok()?.into_iter().next();
    let waits = |word: Word| WAITING.iter().any(|name| word.is(name));
    if commands.clone().filter_map(|command| first(command.query)).any(waits) {
        return refused(Refusal::new("0A000", WAITS_ALONE));
    }
    let mut reply = Vec::new();
    for command in commands {
        // The client's session begins and ends its transaction block by itself.
        if let Some(tag) = split::block_tag(command.query) {
            reply.push(Part::Done(tag.into()));
            continue;
        }
        match answer(desk, &command, command.query) {
            Ok(Outcome::Reply(parts)) => reply.extend(parts),
            Ok(Outcome::Wait(_)) => unreachable!("commands that wait are refused above"),
            Err(refusal) => {
                reply.push(Part::Refused(refusal));
                break;
            }
        }
    }
    Outcome::Reply(reply)
}

fn refused(refusal: Refusal) -> Outcome {
    Outcome::Reply(vec![Part::Refused(refusal)])
}

fn answer(desk: &mut Desk, asked: &Asked<'_>, text: &str) -> Answer {
    let words = words::split(text)?;
    let Some((first, arguments)) = words.split_first() else {
        return Ok(Outcome::Reply(vec![Part::Nothing]));
    };
    let entry = COMMANDS.iter().find(|entry| first.is(entry.name));
    let entry = entry.ok_or_else(|| unknown_command(asked, first, arguments))?;
    if asked.describes && entry.admin {
        return Ok(Outcome::Reply(Vec::new()));
    }
    if entry.admin {
        if !asked.admin {
            return Err(Refusal::not_allowed());
        }
        let Asked { user, query, .. } = asked;
        tracing::info!(cause = "console", user = &**user, "{query}");
    }
    (entry.run)(desk, asked, arguments)
}

fn show(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    // Listings of the cache have names of two words.
    let [first, rest @ ..] = arguments else { return Err(Refusal::syntax(asked.query)) };
    let what = &rest.iter().fold(first.clone(), |name, word| name.and(word));
    let part = if what.is("help") {
        Part::Notice { text: "Console usage".into(), detail: help() }
    } else if what.is("all") {
        Part::Rows(ALL.show(&desk.view()))
    } else if let Some((name, value)) = SETTINGS.iter().find(|(name, _)| what.is(name)) {
        Part::Rows(Table::of(name, value))
    } else if let Some((_, listing)) = LISTINGS.iter().find(|(name, _)| what.is(name)) {
        Part::Rows(listing.show(&desk.view()))
    } else {
        let meant = nearest(&what.text.to_lowercase(), shown());
        return Err(Refusal::meant(asked.query, meant.map(|meant| format!("SHOW {meant}"))));
    };
    Ok(Outcome::Reply(vec![part, Part::Done("SHOW".into())]))
}

fn help() -> String {
    let names: Vec<_> = LISTINGS.iter().map(|(name, _)| name.to_uppercase()).collect();
    let mut help = format!("\n\tSHOW HELP|{}", names.join("|"));
    for entry in COMMANDS.iter().filter(|entry| !entry.usage.is_empty()) {
        help += &format!("\n\t{}", entry.usage);
    }
    help
}

/// Returns the names of all that SHOW shows.
fn shown() -> impl Iterator<Item = &'static str> {
    let settings = SETTINGS.iter().map(|(name, _)| *name);
    LISTINGS.iter().map(|(name, _)| *name).chain(settings).chain(["all", "help"])
}

/// Refuses a command that there is none of. It may be mistyped, or be a listing without its SHOW.
fn unknown_command(asked: &Asked<'_>, first: &Word, arguments: &[Word]) -> Refusal {
    let rest = arguments.iter().fold(String::new(), |rest, word| rest + " " + &word.text);
    let (first, all) = (first.text.to_lowercase(), format!("{}{rest}", first.text).to_lowercase());
    let listing = LISTINGS.iter().find(|(name, _)| *name == all);
    let meant = match listing {
        Some((name, _)) => Some(format!("SHOW {name}")),
        None => nearest(&first, COMMANDS.iter().map(|entry| entry.name)).map(|name| {
            let shows = nearest(rest.trim(), shown()).filter(|_| name == "show");
            format!("{name} {}", shows.unwrap_or(rest.trim()))
        }),
    };
    Refusal::meant(asked.query, meant)
}

/// Answers SELECT with a number by that number, as a check of monitors, and SELECT with the name of
/// a listing as SHOW does; otherwise by the listings as tables.
fn select(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    match arguments {
        [number] if number.text.parse::<i64>().is_ok() => {
            let rows = Part::Rows(Table::of("?column?", &number.text));
            Ok(Outcome::Reply(vec![rows, Part::Done("SELECT 1".into())]))
        }
        [name] if LISTINGS.iter().any(|(listing, _)| name.is(listing)) => {
            show(desk, asked, arguments)
        }
        _ => from_listings(desk, asked),
    }
}

/// Answers a SELECT behind common table expressions.
fn with(desk: &mut Desk, asked: &Asked<'_>, _: &[Word]) -> Answer {
    from_listings(desk, asked)
}

#[cfg(feature = "sqlite")]
fn from_listings(desk: &Desk, asked: &Asked<'_>) -> Answer {
    super::select::run(&desk.view(), asked.query).map(Outcome::Reply)
}

#[cfg(not(feature = "sqlite"))]
fn from_listings(_: &Desk, _: &Asked<'_>) -> Answer {
    let message = "this build has no SQLite, which the console needs for SELECT; use SHOW";
    Err(Refusal::new("0A000", message))
}

/// Accepts the commands of drivers that empty a session between two of their users: one of the
/// console has nothing to empty.
fn reset(_: &mut Desk, _: &Asked<'_>, _: &[Word]) -> Answer {
    done("RESET")
}

fn discard(_: &mut Desk, _: &Asked<'_>, _: &[Word]) -> Answer {
    done("DISCARD ALL")
}

fn deallocate(_: &mut Desk, _: &Asked<'_>, arguments: &[Word]) -> Answer {
    let all = arguments.iter().any(|word| word.is("all"));
    done(if all { "DEALLOCATE ALL" } else { "DEALLOCATE" })
}

fn close(_: &mut Desk, _: &Asked<'_>, _: &[Word]) -> Answer {
    done("CLOSE CURSOR ALL")
}

fn unlisten(_: &mut Desk, _: &Asked<'_>, _: &[Word]) -> Answer {
    done("UNLISTEN")
}

fn reload(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let [] = arguments else { return Err(Refusal::syntax(asked.query)) };
    let (answer, outcome) = mpsc::channel();
    // The supervisor ends last.
    let _ = desk.commands.send(SupervisorCommand::Reload(Some(answer)));
    match outcome.recv_timeout(SNAPSHOT_TIMEOUT) {
        Ok(Ok(())) => done("RELOAD"),
        Ok(Err(why)) => Err(Refusal::new("F0000", format!("RELOAD failed: {why}"))),
        Err(_) => Err(Refusal::ending()),
    }
}

fn pause(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let database = database(desk, asked, arguments)?;
    desk.state.pause(database.as_ref());
    Ok(Outcome::Wait(Wait { tag: PAUSE, database }))
}

fn resume(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let database = database(desk, asked, arguments)?;
    desk.state.resume(database.as_ref());
    desk.give_up(|wait| wait.is_pause() && (database.is_none() || wait.database == database));
    done("RESUME")
}

fn reconnect(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let database = database(desk, asked, arguments)?;
    desk.state.reconnect(database.as_ref());
    done("RECONNECT")
}

fn wait_close(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let database = database(desk, asked, arguments)?;
    Ok(Outcome::Wait(Wait { tag: "WAIT_CLOSE", database }))
}

fn kill(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let database = database(desk, asked, arguments)?;
    desk.state.kill(database.as_ref());
    done("KILL")
}

fn kill_client(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let [id] = arguments else { return Err(Refusal::syntax(asked.query)) };
    let serial = id.text.parse().map(ClientSerial);
    let serial = serial.map_err(|_| Refusal::new("22P02", "a client's id is a whole number"))?;
    if !desk.view_of(Extent::CLIENTS).clients().any(|(_, client)| client.serial == serial) {
        return Err(Refusal::new("02000", "client not found"));
    }
    desk.state.command(&Command::KillClient(serial));
    done("KILL_CLIENT")
}

fn explain(desk: &mut Desk, asked: &Asked<'_>, _: &[Word]) -> Answer {
    if let Some(sql) = words::behind(asked.query, EXPLAIN_AUTOPREPARE) {
        let most = desk.state.options().defaults.autoprepare_max_literals;
        Ok(Outcome::Reply(autoprepare::explain(sql.trim(), most as usize)))
    } else if let Some(sql) = words::behind(asked.query, EXPLAIN_CACHE) {
        let rows = Part::Rows(cache::explain(&desk.pg, &desk.state.options(), sql));
        Ok(Outcome::Reply(vec![rows, Part::Done("EXPLAIN".into())]))
    } else {
        let second = asked.query.split_whitespace().nth(1).unwrap_or_default().to_lowercase();
        let meant = nearest(&second, ["autoprepare", "cache"]);
        let meant = meant.map(|meant| format!("EXPLAIN {meant} …"));
        Err(Refusal::meant(asked.query, meant))
    }
}

fn flush(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    match arguments {
        [what, rest @ ..] if what.is("cache") => {
            cache::flush(&desk.pg, asked.query, rest)?;
            done("FLUSH")
        }
        [what] if what.is("auth") => {
            desk.pg.cores.shared.protocol.flush_users(desk.state.clock.now());
            done("FLUSH")
        }
        [what] if what.is("autoprepare") => {
            desk.state.command(&Command::Flush);
            done("FLUSH")
        }
        [what] => {
            let meant = nearest(&what.text.to_lowercase(), ["auth", "autoprepare", "cache"]);
            let meant = meant.map(|meant| format!("FLUSH {meant}"));
            Err(Refusal::meant(asked.query, meant))
        }
        _ => Err(Refusal::syntax(asked.query)),
    }
}

fn shutdown(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    let command = match arguments {
        [] => SupervisorCommand::Stop,
        [how] if how.is("wait_for_servers") => SupervisorCommand::Drain,
        [how] if how.is("wait_for_clients") => SupervisorCommand::DrainSlowly,
        _ => return Err(Refusal::syntax(asked.query)),
    };
    // The supervisor ends last.
    let _ = desk.commands.send(command);
    done("SHUTDOWN")
}

fn disable(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    set_disabled(desk, asked, arguments, true)?;
    done("DISABLE")
}

fn enable(desk: &mut Desk, asked: &Asked<'_>, arguments: &[Word]) -> Answer {
    set_disabled(desk, asked, arguments, false)?;
    done("ENABLE")
}

/// Has a database take no new clients, or take them again.
fn set_disabled(
    desk: &mut Desk,
    asked: &Asked<'_>,
    arguments: &[Word],
    disabled: bool,
) -> Result<(), Refusal> {
    match database(desk, asked, arguments)? {
        None => Err(Refusal::new("42601", "a database is required")),
        Some(name) if Database::CONSOLES.contains(&&*name) => {
            Err(Refusal::new("42501", format!("cannot disable admin db: {name}")))
        }
        Some(name) => {
            desk.state.set_disabled(&name, disabled);
            Ok(())
        }
    }
}

fn unsupported(_: &mut Desk, asked: &Asked<'_>, _: &[Word]) -> Answer {
    Err(Refusal::new("0A000", format!("'{}' is not supported by Refrain", asked.query)))
}

/// Returns the database that a command names, or `None` for all databases.
fn database(
    desk: &Desk,
    asked: &Asked<'_>,
    arguments: &[Word],
) -> Result<Option<Arc<str>>, Refusal> {
    match arguments {
        [] => Ok(None),
        [name] if desk.state.options().database(&name.text).is_some() => {
            Ok(Some(Arc::from(name.text.as_str())))
        }
        [name] => {
            let options = desk.state.options();
            let known = options.databases.iter().map(|database| &*database.name);
            Err(Refusal::no_database(&name.text, nearest(&name.text, known)))
        }
        _ => Err(Refusal::syntax(asked.query)),
    }
}

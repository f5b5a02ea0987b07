//! The language of conversations.
//!
//! A line is one thing; a line that begins with a blank goes on with the line before it, and `#`
//! begins a comment. Words are separated by blanks, and quoted if there are blanks in them; in
//! quotes `\n`, `\t`, `\\` and `\"` mean what they do elsewhere, and `{x*3}` means `xxx`.
//!
//! `with: NAME = VALUE`: an option of the pool. Without it `pool_size` is 1.
//!
//! `setup: SQL`: run directly in the two databases, before anything else.
//!
//! `elsewhere: SQL`: run directly in the two databases, at this point.
//!
//! `C1 connect NAME=VALUE …`: logs client C1 in with startup parameters. Without this line a client
//! is logged in where it is first named.
//!
//! `C1 > MESSAGE; MESSAGE`: sends in one write, and compares all replies that are due.
//!
//! `C1 >> MESSAGE; …`: sends, and compares nothing.
//!
//! `C1 < WORDS`: compares the replies that are due, and expects these words since C1 last sent: `1
//! 2 D(7) C(SELECT 1) Z(I)`, where parentheses may be left out.
//!
//! `C1 ~> …`, `C1 ~< …`: the same through Refrain alone, where it differs on purpose.
//!
//! `C1 leave`, `C1 vanish`: ends the session, with a Terminate or without.
//!
//! `check: COUNTER = N`: compares a counter of Refrain: `=`, `<=` or `>=`.
//!
//! Messages are `Parse NAME SQL [OID…]`, `Bind STATEMENT [VALUE…]` (`null` unquoted is NULL;
//! `p1:STATEMENT` binds portal p1), `Describe S|P NAME`, `Execute [PORTAL [LIMIT]]`,
//! `Close S|P NAME`, `Sync`, `Flush`, `Query SQL`, `CopyData TEXT`, `CopyDone`, `CopyFail TEXT`,
//! `Function OID [VALUE…]`. The unnamed statement is `""`.

use refrain_differ::msg::{Bind, Msg};

/// A step of a conversation.
#[derive(Debug)]
pub(crate) enum Step {
    /// An option of the pool.
    With(String, String),
    /// SQL that runs directly, before the conversation.
    Setup(String),
    /// SQL that runs directly, during the conversation.
    Elsewhere(String),
    /// A client's login with startup parameters.
    Connect(String, Vec<(String, String)>),
    /// Messages of a client.
    Send { client: String, side: Side, msgs: Vec<Msg>, settle: bool },
    /// The expected replies of a client.
    Expect { client: String, side: Side, words: Vec<String> },
    /// The end of a client's session.
    End { client: String, politely: bool },
    /// A counter, how to compare it, and with what.
    Check(String, String, u64),
}

/// The sessions that a step concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Both sessions: PostgreSQL's and Refrain's.
    Both,
    /// Refrain's session alone.
    Proxied,
}

/// A word, and whether it was quoted.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    quoted: bool,
}

/// Reads a conversation. Returns its steps with their line numbers.
pub(crate) fn read(text: &str) -> Vec<(usize, Step)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let goes_on = line.starts_with(' ') && !line.trim_start().starts_with('#');
        match lines.last_mut() {
            Some((_, last)) if goes_on => *last = format!("{last} {}", line.trim()),
            _ => lines.push((number, line.trim().to_owned())),
        }
    }
    lines.retain(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(number, line): (usize, String)| {
        let step = step(&line).unwrap_or_else(|why| panic!("line {number}: {why}: {line}"));
        (number, step)
    };
    lines.into_iter().map(read).collect()
}

fn step(line: &str) -> Result<Step, String> {
    let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    match head {
        "with:" => {
            let (name, value) = rest.split_once('=').ok_or("NAME = VALUE")?;
            Ok(Step::With(name.trim().to_owned(), value.trim().to_owned()))
        }
        "setup:" => Ok(Step::Setup(rest.to_owned())),
        "elsewhere:" => Ok(Step::Elsewhere(rest.to_owned())),
        "check:" => {
            let [name, how, value] = rest.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err("COUNTER = N".to_owned());
            };
            let value = value.parse().map_err(|_| "no number")?;
            Ok(Step::Check(name.to_owned(), how.to_owned(), value))
        }
        client => of_client(client.to_owned(), rest),
    }
}

fn of_client(client: String, rest: &str) -> Result<Step, String> {
    let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let side = if verb.starts_with('~') { Side::Proxied } else { Side::Both };
    match verb.trim_start_matches('~') {
        "connect" => {
            let pairs = words(rest)?.into_iter().map(|word| {
                let (name, value) = word.text.split_once('=').ok_or("NAME=VALUE")?;
                Ok((name.to_owned(), value.to_owned()))
            });
            Ok(Step::Connect(client, pairs.collect::<Result<_, String>>()?))
        }
        ">" => Ok(Step::Send { client, side, msgs: messages(rest)?, settle: side == Side::Both }),
        ">>" => Ok(Step::Send { client, side, msgs: messages(rest)?, settle: false }),
        "<" => Ok(Step::Expect { client, side, words: expected(rest) }),
        "leave" => Ok(Step::End { client, politely: true }),
        "vanish" => Ok(Step::End { client, politely: false }),
        _ => Err(format!("what is {verb}")),
    }
}

/// Splits expected words. Blanks inside parentheses do not separate.
fn expected(text: &str) -> Vec<String> {
    let mut depth = 0;
    let separates = |letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ' ' && depth == 0
    };
    text.split(separates).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn messages(text: &str) -> Result<Vec<Msg>, String> {
    let mut msgs = Vec::new();
    let mut message: Vec<Word> = Vec::new();
    for word in words(text)?.into_iter().chain([Word { text: ";".into(), quoted: false }]) {
        if word.text == ";" && !word.quoted {
            msgs.push(one_message(&std::mem::take(&mut message))?);
        } else {
            message.push(word);
        }
    }
    Ok(msgs)
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (text, after) = match first {
            '"' => quoted(&rest[1..])?,
            ';' => (";".to_owned(), &rest[1..]),
            _ => {
                let end = rest.find([' ', ';']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        words.push(Word { text: repeated(&text), quoted: first == '"' });
        rest = after.trim_start();
    }
    Ok(words)
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match letters.next().map(|(_, letter)| letter) {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(letter @ ('"' | '\\')) => value.push(letter),
                other => return Err(format!("what is \\{other:?}")),
            },
            letter => value.push(letter),
        }
    }
    Err("a quote does not end".to_owned())
}

/// Replaces `{x*3}` by `xxx`.
fn repeated(text: &str) -> String {
    let found = text.rsplit_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        let (what, count) = inside.rsplit_once('*')?;
        Some((before, what.repeat(count.parse().ok()?), after))
    });
    found.map_or(text.to_owned(), |(before, middle, after)| {
        format!("{}{middle}{after}", repeated(before))
    })
}

fn one_message(words: &[Word]) -> Result<Msg, String> {
    let (verb, rest) = words.split_first().ok_or("no message")?;
    let text = |at: usize| rest.get(at).map(|word| word.text.clone().into_bytes());
    let first = || text(0).ok_or_else(|| format!("{} of what", verb.text));
    let number = |at: usize| rest.get(at).map_or(Ok(0), |word| word.text.parse::<u32>());
    let number = |at: usize| number(at).map_err(|_| "no number".to_owned());
    let kind = |statement: fn(Vec<u8>) -> Msg, portal: fn(Vec<u8>) -> Msg| {
        let name = text(1).unwrap_or_default();
        Ok(if text(0) == Some(b"S".to_vec()) { statement(name) } else { portal(name) })
    };
    match verb.text.as_str() {
        "Parse" => {
            let oids = (2..rest.len()).map(number).collect::<Result<_, _>>()?;
            Ok(Msg::Parse(first()?, text(1).ok_or("Parse what")?, oids))
        }
        "Bind" => {
            let (portal, stmt) = portal_and_statement(&rest[0]);
            let values = rest[1..].iter().map(value).collect();
            Ok(Msg::Bind(Bind { portal, stmt, values, ..Bind::default() }))
        }
        "Describe" => kind(Msg::DescribeStatement, Msg::DescribePortal),
        "Close" => kind(Msg::CloseStatement, Msg::ClosePortal),
        "Execute" => Ok(Msg::Execute(text(0).unwrap_or_default(), number(1)?)),
        "Sync" => Ok(Msg::Sync),
        "Flush" => Ok(Msg::Flush),
        "Query" => Ok(Msg::Query(first()?)),
        "CopyData" => Ok(Msg::CopyData(first()?)),
        "CopyDone" => Ok(Msg::CopyDone),
        "CopyFail" => Ok(Msg::CopyFail(first()?)),
        "Function" => Ok(Msg::FunctionCall(number(0)?, rest[1..].iter().map(value).collect())),
        other => Err(format!("what is {other}")),
    }
}

fn value(word: &Word) -> Option<Vec<u8>> {
    (word.quoted || word.text != "null").then(|| word.text.clone().into_bytes())
}

fn portal_and_statement(word: &Word) -> (Vec<u8>, Vec<u8>) {
    let (portal, statement) = match word.text.split_once(':') {
        Some(both) if !word.quoted => both,
        _ => ("", word.text.as_str()),
    };
    (portal.as_bytes().to_vec(), statement.as_bytes().to_vec())
}

#[test]
fn scripts_mean_what_they_say() {
    let steps = read(
        "# A comment\nwith: pool_size = 2\nC1 > Parse s \"a {b*3}\\n;\" 23; \
         Bind p:s \"null\" null;\n  Execute p 2\nC1 < 1 C(SELECT 1)\ncheck: binds >= 3\n",
    );
    let shown = format!("{steps:?}");
    let bytes = |text: &str| format!("{:?}", text.as_bytes());
    assert!(shown.contains(&bytes("a bbb\n;")), "{shown}");
    assert!(shown.contains(&format!("values: [Some({}), None]", bytes("null"))), "{shown}");
    assert!(shown.contains("[\"1\", \"C(SELECT 1)\"]"), "{shown}");
    assert!(shown.contains("Check(\"binds\", \">=\", 3)"), "{shown}");
}

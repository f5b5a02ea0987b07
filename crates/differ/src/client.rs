//! A client of an episode: a proxied and a direct session that get the same messages.

use crate::conn::{Broken, Conn};
use crate::features::Features;
use crate::generate::pins;
use crate::guard::Guard;
use crate::late;
use crate::ledger::Ledger;
use crate::mask::{DIRECT, MASKS, PROXIED, same};
use crate::msg::Msg;
use crate::outcome;
use crate::passes::{PASSES, describe_failed_early, pass, warned_only};
use crate::reply::Frame;
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

type Params = Rc<BTreeMap<String, String>>;

/// A difference between the two sides.
pub type Difference = outcome::Difference<Frame>;
/// Why an episode ends before its last step.
pub type Stop = outcome::Stop<Frame>;
/// Counts of a run.
pub type Tally = outcome::Tally<{ MASKS.len() + PASSES.len() }>;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Address of the proxy.
    pub proxied: String,
    /// Address of the server.
    pub direct: String,
    /// Added to the names of both databases.
    pub suffix: String,
    /// Encoding of the databases, used if the run creates them.
    pub encoding: String,
    /// User name on both.
    pub user: String,
    /// The longest that a reply may take.
    pub limit: Duration,
    /// Whether writes to the proxy are cut into pieces.
    pub fragment: bool,
    /// Whether the proxy keeps replies until a write passes through it.
    pub cached: bool,
}

/// A reply of the direct side.
#[derive(Debug)]
struct Expected {
    frame: Frame,
    /// Type of the message that the frame answers.
    answers: u8,
    /// The settings that PostgreSQL had reported to the client by then.
    params: Params,
}

/// The servers' defaults of settings that start-up packets have.
const DEFAULTS: [(&str, &str); 4] = [
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("application_name", ""),
    ("client_encoding", "UTF8"),
];

/// A client with its two sessions.
#[derive(Debug)]
pub struct Client {
    direct: Conn,
    proxied: Conn,
    proxied_params: Params,
    /// The settings with which the direct session began.
    first_params: Params,
    /// The direct session's state.
    pub ledger: Ledger,
    /// Whether the direct session's settings are known.
    pub guard: Guard,
    /// True once the client has sent a message that ties it to its server.
    pub pinned: bool,
    /// True after the sessions have ended.
    pub dead: bool,
    /// The last simple query.
    text: Vec<u8>,
    /// Replies of the direct side that are still to be compared.
    expected: Vec<Expected>,
}

fn with_identity(
    peers: &Peers,
    database: &str,
    params: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = vec![
        ("user".to_owned(), peers.user.clone()),
        ("database".to_owned(), format!("{database}{}", peers.suffix)),
    ];
    all.extend_from_slice(params);
    all
}

impl Client {
    /// Opens both sessions and compares the replies to their start-up packets.
    ///
    /// # Errors
    /// If the replies differ, or the direct session cannot be opened.
    pub fn open(
        peers: &Peers,
        params: &[(String, String)],
        tally: &mut Tally,
        features: &Features,
    ) -> Result<Self, Stop> {
        let direct = Conn::open(&peers.direct, &with_identity(peers, DIRECT, params), peers.limit)
            .map_err(|broken| Stop::Broken(format!("direct connection: {broken:?}")))?;
        let proxied =
            Conn::open(&peers.proxied, &with_identity(peers, PROXIED, params), peers.limit)
                .map_err(|broken| differs(format!("connect: {broken:?}"), &[], Vec::new()))?;
        let mut client = Self {
            direct,
            proxied,
            proxied_params: Rc::default(),
            first_params: Rc::default(),
            ledger: Ledger::default(),
            guard: Guard::default(),
            pinned: false,
            dead: false,
            text: Vec::new(),
            expected: Vec::new(),
        };
        client.ledger.sent(&Msg::Sync, 0);
        client.settle(tally, features)?;
        client.first_params = Rc::clone(&client.ledger.params);
        Ok(client)
    }

    /// True if the client has given a setting of its start-up packet the server's default. To the
    /// proxy's servers that is the same as a RESET, whose code the proxy has not seen.
    #[must_use]
    pub fn went_to_default(&self) -> bool {
        DEFAULTS.iter().any(|(name, default)| {
            let now = self.ledger.params.get(*name);
            now.is_some_and(|now| now == default) && now != self.first_params.get(*name)
        })
    }

    /// Notes messages that are about to be sent on both sides.
    pub fn note(&mut self, msgs: &[Msg], envs: &[u64]) {
        self.pinned |= msgs.iter().any(pins);
        for (msg, env) in msgs.iter().zip(envs) {
            self.ledger.sent(msg, *env);
            if let Msg::Query(text) = msg {
                self.text.clone_from(text);
            }
        }
    }

    /// Sends messages through the proxy.
    ///
    /// # Errors
    /// If the proxy takes no more bytes.
    pub fn send(&mut self, msgs: &[Msg], cuts: Option<&mut Rng>) -> Result<(), Stop> {
        let bytes = encoded(msgs);
        // A peer that has closed the connection is noticed when its replies are read.
        let sent = match cuts {
            None => self.proxied.write(&bytes),
            Some(rng) => self.proxied.write_pieces(&bytes, rng),
        };
        if sent == Err(Broken::Hang) {
            return Err(differs("proxied side takes no more bytes".to_owned(), &[], Vec::new()));
        }
        Ok(())
    }

    /// Sends messages directly.
    ///
    /// # Errors
    /// If the server takes no more bytes.
    pub fn send_directly(&mut self, msgs: &[Msg]) -> Result<(), Stop> {
        match self.direct.write(&encoded(msgs)) {
            Err(Broken::Hang) => Err(Stop::Broken("direct side takes no more bytes".to_owned())),
            _ => Ok(()),
        }
    }

    /// Reads all replies that are due on both sides, and compares them.
    ///
    /// # Errors
    /// If the replies differ.
    pub fn settle(&mut self, tally: &mut Tally, features: &Features) -> Result<(), Stop> {
        self.read_direct()?;
        let expected = std::mem::take(&mut self.expected);
        self.compare(&expected, tally, features)?;
        if self.ledger.dying() {
            self.dead = true;
            let (more, end) = self.proxied.drain();
            let more: Vec<_> = more.into_iter().filter(is_reply).collect();
            if !more.is_empty() || end == Broken::Hang {
                let direct: Vec<_> = expected.into_iter().map(|e| e.frame).collect();
                return Err(differs(format!("after the last reply: {end:?}"), &direct, more));
            }
        }
        self.guard.settle(&self.ledger);
        Ok(())
    }

    /// Reads all replies that are due on the direct side, to compare them later.
    ///
    /// # Errors
    /// If they do not come.
    pub fn read_direct(&mut self) -> Result<(), Stop> {
        while self.ledger.awaits() {
            let frame = self.direct.read().map_err(|broken| {
                let got: Vec<_> = self.expected.iter().map(|e| e.frame.to_string()).collect();
                Stop::Broken(format!("direct side: {broken:?} after {got:#?}"))
            })?;
            let answers = self.ledger.answering();
            self.ledger.received(&frame);
            if is_reply(&frame) {
                let params = Rc::clone(&self.ledger.params);
                self.expected.push(Expected { frame, answers, params });
            }
        }
        Ok(())
    }

    /// Returns the next reply of the proxied side, and notes the settings that it reports.
    fn read_proxied(&mut self) -> Result<Frame, Broken> {
        loop {
            let frame = self.proxied.read()?;
            if is_reply(&frame) {
                return Ok(frame);
            }
            if let Some((name, value)) = frame.parameter().filter(|_| frame.tag == b'S') {
                Rc::make_mut(&mut self.proxied_params).insert(name, value);
            }
        }
    }

    fn compare(
        &mut self,
        expected: &[Expected],
        tally: &mut Tally,
        features: &Features,
    ) -> Result<(), Stop> {
        for reply in expected {
            *tally.replies.entry(kind(&reply.frame)).or_default() += 1;
        }
        let mut proxied = Vec::new();
        let mut at = 0;
        while at < expected.len() {
            let frame = match self.read_proxied() {
                Ok(frame) => frame,
                Err(broken) => {
                    let what = format!("{broken:?} instead of {}", kind(&expected[at].frame));
                    return Err(differs(what, &frames(expected), proxied));
                }
            };
            proxied.push(frame.clone());
            let next = expected.get(at + 1).map(|next| &next.frame);
            if describe_failed_early(&expected[at].frame, next, &frame) {
                tally.uses[MASKS.len()] += 1;
                at += 1;
            } else if warned_only(&expected[at].frame, next, &frame) {
                tally.uses[MASKS.len() + 6] += 1;
                at += 1;
            }
            let frame = self.late(expected, &mut at, frame, &mut proxied, tally)?;
            if let Err(what) = self.judge(&expected[at], &frame, tally) {
                if let Some(pass) =
                    pass(&expected[at].frame, expected[at].answers, &frame, features)
                {
                    tally.uses[MASKS.len() + pass] += 1;
                    return Err(Stop::Passed);
                }
                self.read_on(&mut proxied);
                return Err(differs(what, &frames(expected), proxied));
            }
            at += 1;
        }
        Ok(())
    }

    /// Returns the reply to compare next. An error may come later or earlier than directly: see
    /// [`late`].
    fn late(
        &mut self,
        expected: &[Expected],
        at: &mut usize,
        mut frame: Frame,
        proxied: &mut Vec<Frame>,
        tally: &mut Tally,
    ) -> Result<Frame, Stop> {
        let rows_first = |it: &Expected| it.frame.tag == b'D';
        if frame.tag == b'E' && matches!(expected[*at].frame.tag, b'D' | b'C') {
            let rows = expected[*at..].iter().take_while(|it| rows_first(it)).count();
            let error = expected.get(*at + rows);
            if error.is_some_and(|it| late::may_be_late(&it.frame, it.answers)) {
                tally.uses[MASKS.len() + 11] += 1;
                *at += rows;
            } else if late::is_beyond_limit(&self.text, &frame, expected[*at].answers) {
                tally.uses[MASKS.len() + 12] += 1;
                return Err(Stop::Passed);
            }
            return Ok(frame);
        }
        let now = &expected[*at];
        if !late::may_be_late(&now.frame, now.answers) || !late::is_before(&frame) {
            return Ok(frame);
        }
        tally.uses[MASKS.len() + if frame.tag == b'D' { 11 } else { 10 }] += 1;
        let begun = proxied.len() - 1;
        while !matches!(frame.tag, b'E' | b'Z') {
            frame = match self.read_proxied() {
                Ok(frame) => frame,
                Err(broken) => {
                    return Err(differs(format!("{broken:?}"), &frames(expected), proxied.clone()));
                }
            };
            proxied.push(frame.clone());
        }
        if frame.tag == b'E' && late::is_another(&now.frame, &frame, now.answers) {
            return Err(Stop::Passed);
        }
        if frame.tag == b'E' {
            return Ok(frame);
        }
        match late::is_needless(&self.text, &proxied[begun..]) {
            true => Err(Stop::Passed),
            false => {
                let what = format!("success instead of {}", kind(&now.frame));
                Err(differs(what, &frames(expected), proxied.clone()))
            }
        }
    }

    /// Compares one reply with the expected one.
    fn judge(&self, expected: &Expected, frame: &Frame, tally: &mut Tally) -> Result<(), String> {
        let Some(used) = same(&expected.frame, frame, expected.answers) else {
            return Err(format!("{} instead of {}", kind(frame), kind(&expected.frame)));
        };
        for (count, used) in tally.uses.iter_mut().zip(used) {
            *count += u64::from(used);
        }
        let told = (&*expected.params, &*self.proxied_params);
        if frame.tag == b'Z' && told.0 != told.1 && !differ_in_encoding(told.0, told.1) {
            return Err(param_difference(told.0, told.1));
        }
        Ok(())
    }

    /// Reads a few more frames after a difference, for the report.
    fn read_on(&mut self, proxied: &mut Vec<Frame>) {
        self.proxied.shorten(Duration::from_millis(100));
        while let Ok(frame) = self.read_proxied() {
            proxied.push(frame);
            if proxied.len() > 200 {
                return;
            }
        }
    }

    /// Ends both sessions. A client that holds a server sends one more query in the same write,
    /// since no other client needs to wait for that query.
    ///
    /// # Errors
    /// If the last replies differ, or the proxied session does not end.
    pub fn close(mut self, polite: bool) -> Result<(), Stop> {
        let comparable = self.ledger.settled() && !self.dead;
        let served = self.pinned || self.ledger.holds_server();
        let last = (comparable && served).then(|| Msg::Query(b"select 'a last word'".to_vec()));
        self.direct.end(last.as_slice(), polite);
        self.proxied.end(last.as_slice(), polite);
        let (direct, _) = self.direct.drain();
        let (proxied, end) = self.proxied.drain();
        let direct: Vec<_> = direct.into_iter().filter(is_reply).collect();
        let proxied: Vec<_> = proxied.into_iter().filter(is_reply).collect();
        let alike = direct.len() == proxied.len()
            && direct.iter().zip(&proxied).all(|(one, two)| same(one, two, b'Q').is_some());
        if comparable && !alike {
            return Err(differs(
                "the last words are answered otherwise".to_owned(),
                &direct,
                proxied,
            ));
        }
        if end == Broken::Hang {
            return Err(differs("does not end".to_owned(), &direct, proxied));
        }
        Ok(())
    }
}

fn encoded(msgs: &[Msg]) -> Vec<u8> {
    let mut bytes = Vec::new();
    msgs.iter().for_each(|msg| msg.encode(&mut bytes));
    bytes
}

/// True for the frames whose order is compared: all but ParameterStatus, BackendKeyData and
/// NegotiateProtocolVersion.
fn is_reply(frame: &Frame) -> bool {
    !matches!(frame.tag, b'S' | b'K' | b'v')
}

fn frames(expected: &[Expected]) -> Vec<Frame> {
    expected.iter().map(|e| e.frame.clone()).collect()
}

fn differs(what: String, direct: &[Frame], proxied: Vec<Frame>) -> Stop {
    Stop::Differs(Box::new(Difference { what, direct: direct.to_vec(), proxied }))
}

/// Returns a frame's type, with the code of an error or the status of a ReadyForQuery.
fn kind(frame: &Frame) -> String {
    if frame.has_fields() {
        let code = String::from_utf8_lossy(frame.field(b'C')).into_owned();
        return format!("{} {code}", char::from(frame.tag));
    }
    let status = if frame.tag == b'Z' { frame.body.as_slice() } else { &[] };
    format!("{}{}", char::from(frame.tag), String::from_utf8_lossy(status))
}

/// Whether the values of two clients differ only in bytes that are no UTF-8. A client that changes
/// its encoding keeps the bytes that it was told; the proxy's is told once more if another server
/// gets the setting.
fn differ_in_encoding(
    direct: &BTreeMap<String, String>,
    proxied: &BTreeMap<String, String>,
) -> bool {
    let ascii = |value: &str| value.chars().filter(char::is_ascii).collect::<String>();
    let encoded = |one: &str, other: &str| {
        one.contains(char::REPLACEMENT_CHARACTER) && ascii(one) == ascii(other)
    };
    direct.len() == proxied.len()
        && direct.iter().zip(proxied).all(|((name, one), (other_name, other))| {
            name == other_name && (one == other || encoded(one, other) || encoded(other, one))
        })
}

fn param_difference(
    direct: &BTreeMap<String, String>,
    proxied: &BTreeMap<String, String>,
) -> String {
    let names: std::collections::BTreeSet<_> = direct.keys().chain(proxied.keys()).collect();
    let differ: Vec<_> = names
        .into_iter()
        .filter(|name| direct.get(*name) != proxied.get(*name))
        .map(|name| {
            let (is, should) = (proxied.get(name), direct.get(name));
            format!("{name} {is:?} instead of {should:?}")
        })
        .collect();
    format!("at ReadyForQuery: {}", differ.join(", "))
}

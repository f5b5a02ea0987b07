//! The packets of a login.
//!
//! The server speaks first: [`HandshakeV10`]. The client answers with [`HandshakeResponse41`],
//! behind an [`SslRequest`] if it goes over to TLS. Then the server sends an [`AuthReply`], and
//! either side the data that the authentication plugin wants, until OK or ERR comes. (MySQL,
//! "Connection Phase"; MariaDB, "Connection".)

use crate::capability::Capabilities;
use crate::fields::{Fields, put_null_terminated, put_string};
use crate::reply::{ErrPacket, OkPacket, first};
use crate::{Malformed, Status};

/// Bytes of a server's random number, which proofs of passwords are made with.
pub const NONCE_BYTES: usize = 20;

/// The version of the protocol that a greeting begins with.
const PROTOCOL_VERSION: u8 = 10;
/// Bytes of the nonce's first part in a greeting.
const FIRST_PART_BYTES: usize = 8;
/// Bytes of the nonce's second part with its zero byte.
const SECOND_PART_BYTES: usize = 13;
/// Bytes of an SSLRequest, which are the first bytes of a HandshakeResponse41 as well.
const SSL_REQUEST_BYTES: usize = 32;

/// The server's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting<'a> {
    /// The server waits for a login.
    Handshake(HandshakeV10<'a>),
    /// The server refuses the connection.
    Refused(ErrPacket<'a>),
}

impl<'a> Greeting<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// A payload that is neither, a greeting of another version, or one of a server that lacks
    /// [`Capabilities::PROTOCOL_41`] or [`Capabilities::SECURE_CONNECTION`], as servers before
    /// MySQL 4.1 do.
    pub fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        if payload.first() == Some(&first::ERR) {
            return ErrPacket::read(payload).map(Self::Refused);
        }
        let greeting = HandshakeV10::fields(payload).ok_or(Malformed::new("HandshakeV10"));
        greeting.map(Self::Handshake)
    }
}

/// The server's greeting (MySQL, "Protocol::HandshakeV10"; MariaDB, "Connection", "Initial
/// Handshake Packet").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeV10<'a> {
    /// The server's version. MariaDB puts `5.5.5-` in front up to version 10, for old replicas.
    pub version: &'a [u8],
    /// The session's number, by which KILL names it.
    pub connection_id: u32,
    /// The random number that the proof is made with.
    pub nonce: [u8; NONCE_BYTES],
    /// The capabilities that the server offers.
    pub capabilities: Capabilities,
    /// The low byte of the id of the server's collation.
    pub collation: u8,
    /// Flags of the session.
    pub status: Status,
    /// The plugin that the nonce is for; empty without [`Capabilities::PLUGIN_AUTH`].
    pub plugin: &'a [u8],
}

impl<'a> HandshakeV10<'a> {
    fn fields(payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        if fields.u8()? != PROTOCOL_VERSION {
            return None;
        }
        let version = fields.null_terminated()?;
        let connection_id = fields.u32()?;
        let start = fields.array::<FIRST_PART_BYTES>()?;
        fields.u8()?;
        let low = fields.u16()?;
        let collation = fields.u8()?;
        let status = Status(fields.u16()?);
        let low = u32::from(low) | u32::from(fields.u16()?) << 16;
        let nonce_bytes = usize::from(fields.u8()?);
        fields.bytes(6)?;
        let capabilities = Capabilities::from_low(low).with_high(fields.u32()?);
        if !capabilities.has(Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION) {
            return None;
        }
        let rest = nonce_bytes.saturating_sub(FIRST_PART_BYTES).max(SECOND_PART_BYTES);
        let end = fields.bytes(rest)?;
        let mut nonce = [0; NONCE_BYTES];
        nonce[..FIRST_PART_BYTES].copy_from_slice(&start);
        nonce[FIRST_PART_BYTES..].copy_from_slice(end.get(..NONCE_BYTES - FIRST_PART_BYTES)?);
        // MySQL 5.5.7 to 5.5.9 sent no zero byte behind the name.
        let named = capabilities.has(Capabilities::PLUGIN_AUTH);
        let plugin = if named { fields.until_null_or_end() } else { &[] };
        Some(Self { version, connection_id, nonce, capabilities, collation, status, plugin })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (low, high) = self.capabilities.halves();
        let [a, b, c, d] = low.to_le_bytes();
        let named = self.capabilities.has(Capabilities::PLUGIN_AUTH);
        out.push(PROTOCOL_VERSION);
        put_null_terminated(out, self.version);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        put_null_terminated(out, &self.nonce[..FIRST_PART_BYTES]);
        out.extend_from_slice(&[a, b, self.collation]);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&[c, d, if named { NONCE_BYTES as u8 + 1 } else { 0 }]);
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&high.to_le_bytes());
        put_null_terminated(out, &self.nonce[FIRST_PART_BYTES..]);
        if named {
            put_null_terminated(out, self.plugin);
        }
    }
}

/// The client's first packet, on a connection or within its TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login<'a> {
    /// The client goes over to TLS, and sends its response there.
    SslRequest(SslRequest),
    /// The client logs in.
    Response(HandshakeResponse41<'a>),
}

impl<'a> Login<'a> {
    /// Reads a payload that answers a greeting which offers these capabilities. The two packets are
    /// told apart by their length: a response has strings behind the bytes of an SSLRequest.
    ///
    /// # Errors
    /// A payload that is neither, or that of a client without [`Capabilities::PROTOCOL_41`].
    pub fn read(payload: &'a [u8], offered: Capabilities) -> Result<Self, Malformed> {
        let mut fields = Fields(payload);
        let request = SslRequest::fields(&mut fields).ok_or(Malformed::new("login"))?;
        let sent = request.capabilities;
        if !sent.has(Capabilities::PROTOCOL_41) {
            return Err(Malformed::new("login before MySQL 4.1"));
        }
        if !fields.is_empty() {
            let response = HandshakeResponse41::fields(request, fields, offered);
            return response.map(Self::Response).ok_or(Malformed::new("HandshakeResponse41"));
        }
        let tls = sent.has(Capabilities::SSL);
        if tls { Ok(Self::SslRequest(request)) } else { Err(Malformed::new("SSLRequest")) }
    }
}

/// Asks for TLS: the next bytes are the client's first record (MySQL, "Protocol::SSLRequest";
/// MariaDB, "Connection", "SSL Request Packet").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslRequest {
    /// The capabilities that the client wants, offered or not.
    pub capabilities: Capabilities,
    /// The longest packet that the client wants to send or take, in bytes. Servers do not use it.
    pub max_packet: u32,
    /// The low byte of the id of the client's collation.
    pub collation: u8,
}

impl SslRequest {
    fn fields(fields: &mut Fields<'_>) -> Option<Self> {
        let low = fields.u32()?;
        let max_packet = fields.u32()?;
        let collation = fields.u8()?;
        fields.bytes(19)?;
        let capabilities = Capabilities::from_low(low).with_high(fields.u32()?);
        Some(Self { capabilities, max_packet, collation })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + SSL_REQUEST_BYTES;
        let (low, high) = self.capabilities.halves();
        out.extend_from_slice(&low.to_le_bytes());
        out.extend_from_slice(&self.max_packet.to_le_bytes());
        out.push(self.collation);
        out.resize(end - size_of::<u32>(), 0);
        out.extend_from_slice(&high.to_le_bytes());
    }
}

/// The client's login (MySQL, "Protocol::HandshakeResponse41"; MariaDB, "Connection", "Handshake
/// Response Packet").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeResponse41<'a> {
    /// The capabilities that the client wants. A reader returns those that are offered as well:
    /// some libraries set the flag of a field and leave the field out if it is not offered.
    pub capabilities: Capabilities,
    /// The longest packet that the client wants to send or take, in bytes. Servers do not use it.
    pub max_packet: u32,
    /// The low byte of the id of the client's collation.
    pub collation: u8,
    /// The user.
    pub user: &'a [u8],
    /// The proof of the password, made for [`HandshakeResponse41::plugin`].
    pub proof: &'a [u8],
    /// The default database, under [`Capabilities::CONNECT_WITH_DB`].
    pub database: &'a [u8],
    /// The plugin, under [`Capabilities::PLUGIN_AUTH`].
    pub plugin: &'a [u8],
    /// Attributes of the connection, under [`Capabilities::CONNECT_ATTRS`].
    pub attributes: Attributes<'a>,
    /// The level of compression, under [`Capabilities::ZSTD_COMPRESSION_ALGORITHM`].
    pub zstd_level: u8,
}

impl<'a> HandshakeResponse41<'a> {
    /// Reads the fields behind those that an SSLRequest has.
    fn fields(request: SslRequest, mut fields: Fields<'a>, offered: Capabilities) -> Option<Self> {
        let SslRequest { capabilities: sent, max_packet, collation } = request;
        let capabilities = sent & offered;
        let user = fields.null_terminated()?;
        let proof = proof(&mut fields, capabilities)?;
        let given = |capability| capabilities.has(capability);
        let database =
            if given(Capabilities::CONNECT_WITH_DB) { fields.null_terminated()? } else { &[] };
        let plugin =
            if given(Capabilities::PLUGIN_AUTH) { fields.until_null_or_end() } else { &[] };
        let attributes = if given(Capabilities::CONNECT_ATTRS) && !fields.is_empty() {
            Attributes(fields.string()?)
        } else {
            Attributes::default()
        };
        let compressed = given(Capabilities::ZSTD_COMPRESSION_ALGORITHM);
        let zstd_level = if compressed { fields.u8()? } else { 0 };
        Some(Self {
            capabilities,
            max_packet,
            collation,
            user,
            proof,
            database,
            plugin,
            attributes,
            zstd_level,
        })
    }

    /// Appends the payload. A proof of more than 255 bytes needs
    /// [`Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA`].
    pub fn write(&self, out: &mut Vec<u8>) {
        let &Self { capabilities, max_packet, collation, .. } = self;
        SslRequest { capabilities, max_packet, collation }.write(out);
        put_null_terminated(out, self.user);
        if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            put_string(out, self.proof);
        } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
            put_short(out, self.proof);
        } else {
            put_null_terminated(out, self.proof);
        }
        if capabilities.has(Capabilities::CONNECT_WITH_DB) {
            put_null_terminated(out, self.database);
        }
        if capabilities.has(Capabilities::PLUGIN_AUTH) {
            put_null_terminated(out, self.plugin);
        }
        if capabilities.has(Capabilities::CONNECT_ATTRS) {
            put_string(out, self.attributes.0);
        }
        if capabilities.has(Capabilities::ZSTD_COMPRESSION_ALGORITHM) {
            out.push(self.zstd_level);
        }
    }
}

/// Reads the proof of a login.
fn proof<'a>(fields: &mut Fields<'a>, capabilities: Capabilities) -> Option<&'a [u8]> {
    if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
        fields.string()
    } else {
        short_proof(fields, capabilities)
    }
}

/// Reads a proof with a length of one byte, as COM_CHANGE_USER always has it.
pub(crate) fn short_proof<'a>(
    fields: &mut Fields<'a>,
    capabilities: Capabilities,
) -> Option<&'a [u8]> {
    if !capabilities.has(Capabilities::SECURE_CONNECTION) {
        return fields.null_terminated();
    }
    let length = fields.u8()?;
    fields.bytes(usize::from(length))
}

/// Appends a string with a length of one byte; what is too long is cut.
pub(crate) fn put_short(out: &mut Vec<u8>, text: &[u8]) {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    out.push(length);
    out.extend_from_slice(&text[..usize::from(length)]);
}

/// Attributes of a connection, such as the name of the client's library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// Iterates over name and value of each attribute, in order; stops at a malformed one. Servers
    /// refuse no login for its attributes.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut fields = Fields(self.0);
        std::iter::from_fn(move || Some((fields.string()?, fields.string()?)))
    }

    /// Appends an attribute to the bytes of a list.
    pub fn put(list: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        put_string(list, name);
        put_string(list, value);
    }
}

/// Asks for a proof by another plugin (MySQL, "Protocol::AuthSwitchRequest"; MariaDB, "Connection",
/// "Authentication Switch Request"). The client's answer is the proof alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitchRequest<'a> {
    /// The plugin.
    pub plugin: &'a [u8],
    /// The plugin's data: a new nonce, without its zero byte.
    pub data: &'a [u8],
}

impl<'a> AuthSwitchRequest<'a> {
    /// The plugin that a packet without a name asks for (MySQL,
    /// "Protocol::OldAuthSwitchRequest").
    pub const OLD: &'static [u8] = b"mysql_old_password";

    /// Reads a payload that begins with [`first::AUTH_SWITCH`].
    fn read(rest: &'a [u8]) -> Result<Self, Malformed> {
        if rest.is_empty() {
            return Ok(Self { plugin: Self::OLD, data: &[] });
        }
        let mut fields = Fields(rest);
        let plugin = fields.null_terminated().ok_or(Malformed::new("AuthSwitchRequest"))?;
        let data = fields.rest();
        Ok(Self { plugin, data: data.strip_suffix(&[0]).unwrap_or(data) })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(first::AUTH_SWITCH);
        put_null_terminated(out, self.plugin);
        put_null_terminated(out, self.data);
    }
}

/// A server's packet behind the client's login or proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthReply<'a> {
    /// The client is logged in.
    Ok(OkPacket<'a>),
    /// The client is refused.
    Err(ErrPacket<'a>),
    /// The server asks for another plugin.
    Switch(AuthSwitchRequest<'a>),
    /// Data of the plugin (MySQL, "Protocol::AuthMoreData").
    MoreData(&'a [u8]),
}

impl<'a> AuthReply<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// A payload that is none of them, such as a request for a second factor, which takes
    /// [`Capabilities::MULTI_FACTOR_AUTHENTICATION`].
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Malformed> {
        match payload {
            [first::OK, ..] => OkPacket::read(payload, capabilities).map(Self::Ok),
            [first::ERR, ..] => ErrPacket::read(payload).map(Self::Err),
            [first::AUTH_SWITCH, rest @ ..] => AuthSwitchRequest::read(rest).map(Self::Switch),
            [first::AUTH_MORE_DATA, data @ ..] => Ok(Self::MoreData(data)),
            _ => Err(Malformed::new("reply to a login")),
        }
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        match self {
            Self::Ok(ok) => ok.write(out, first::OK, capabilities),
            Self::Err(err) => err.write(out),
            Self::Switch(switch) => switch.write(out),
            Self::MoreData(data) => {
                out.push(first::AUTH_MORE_DATA);
                out.extend_from_slice(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_as_in_the_manual() {
        let payload = b"\x0a5.6.4-m7-log\0\x56\x0a\0\0RB3vz&Gr\0\xff\xff\x08\x02\0\x0f\xc0\x15\
            \0\0\0\0\0\0\0\0\0\0+yD&/ZZ305ZG\0mysql_native_password\0";
        let Ok(Greeting::Handshake(greeting)) = Greeting::read(payload) else { panic!("refused") };
        assert_eq!((greeting.version, greeting.connection_id), (&b"5.6.4-m7-log"[..], 2646));
        assert_eq!(&greeting.nonce, b"RB3vz&Gr+yD&/ZZ305ZG");
        assert_eq!(greeting.capabilities.bits(), 0xC00F_FFFF);
        assert_eq!((greeting.collation, greeting.status), (8, Status::AUTOCOMMIT));
        assert_eq!(greeting.plugin, b"mysql_native_password");
        let mut out = Vec::new();
        greeting.write(&mut out);
        assert_eq!(out, payload);
        for cut in 0..payload.len() - b"mysql_native_password\0".len() {
            assert!(Greeting::read(&payload[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_greeting_without_a_plugin() {
        let payload = b"\x0a5.5.2-m2\0\x0b\0\0\0dvH@I-CJ\0\xff\xf7\x08\x02\0\0\0\0\
            \0\0\0\0\0\0\0\0\0\0*4d|cZwk4^]:\0";
        let Ok(Greeting::Handshake(greeting)) = Greeting::read(payload) else { panic!("refused") };
        assert_eq!((&greeting.nonce, greeting.plugin), (b"dvH@I-CJ*4d|cZwk4^]:", &b""[..]));
        assert!(greeting.capabilities.has(Capabilities::SECURE_CONNECTION));
    }

    #[test]
    fn a_server_may_refuse_before_it_greets() {
        let refused = Greeting::read(b"\xff\x10\x04Too many connections");
        let Ok(Greeting::Refused(err)) = refused else { panic!("{refused:?}") };
        assert_eq!((err.number, err.message), (1040, &b"Too many connections"[..]));
        assert!(Greeting::read(b"\x09x\0").is_err());
    }

    #[test]
    fn a_login_as_in_the_manual() {
        let payload =
            b"\x8d\xa6\x0f\x00\x00\x00\x00\x01\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
            pam\0\x14\xab\x09\xee\xf6\xbc\xb1\x32\x3e\x61\x14\x38\x65\xc0\x99\x1d\x95\x7d\x75\
            \xd4\x47test\0mysql_native_password\0";
        let offered = Capabilities::LOW;
        let Ok(Login::Response(response)) = Login::read(payload, offered) else { panic!("none") };
        assert_eq!((response.user, response.database), (&b"pam"[..], &b"test"[..]));
        assert_eq!((response.proof.len(), response.plugin), (20, &b"mysql_native_password"[..]));
        assert_eq!((response.max_packet, response.collation), (16 << 20, 8));
        let mut out = Vec::new();
        response.write(&mut out);
        assert_eq!(out, payload);
        // Its plugin is the last field, and may lack its zero byte.
        for cut in 0..payload.len() - b"mysql_native_password\0".len() {
            assert!(Login::read(&payload[..cut], offered).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_request_for_tls_is_a_login_without_strings() {
        let sent = Capabilities::PROTOCOL_41 | Capabilities::SSL | Capabilities::CLIENT_MYSQL;
        let request = SslRequest { capabilities: sent, max_packet: 1 << 24, collation: 45 };
        let mut out = Vec::new();
        request.write(&mut out);
        assert_eq!(out.len(), SSL_REQUEST_BYTES);
        assert_eq!(Login::read(&out, Capabilities::LOW), Ok(Login::SslRequest(request)));
        out[1] &= !0x08; // SSL
        assert!(Login::read(&out, Capabilities::LOW).is_err());
    }

    #[test]
    fn a_switch_has_a_name_and_a_nonce() {
        let read = |payload| AuthReply::read(payload, Capabilities::NONE);
        let switch = AuthSwitchRequest { plugin: b"mysql_native_password", data: b"zQg4i6oNy6=r" };
        assert_eq!(
            read(b"\xfemysql_native_password\0zQg4i6oNy6=r\0"),
            Ok(AuthReply::Switch(switch))
        );
        let old = AuthSwitchRequest { plugin: AuthSwitchRequest::OLD, data: b"" };
        assert_eq!(read(b"\xfe"), Ok(AuthReply::Switch(old)));
        assert!(read(b"\xfemysql").is_err());
        assert_eq!(read(b"\x01\x04"), Ok(AuthReply::MoreData(b"\x04")));
        assert!(read(b"\x02plugin\0").is_err());
    }

    #[test]
    fn fields_that_are_not_offered_are_not_there() {
        let sent = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
        let response = HandshakeResponse41 {
            capabilities: sent | Capabilities::PLUGIN_AUTH,
            max_packet: 0,
            collation: 45,
            user: b"ann",
            proof: b"",
            database: b"",
            plugin: b"p",
            attributes: Attributes::default(),
            zstd_level: 0,
        };
        let mut out = Vec::new();
        response.write(&mut out);
        out.truncate(out.len() - 2); // the plugin
        out[2] |= 0x10; // CONNECT_ATTRS
        let Ok(Login::Response(read)) = Login::read(&out, sent) else { panic!("none") };
        assert_eq!((read.capabilities, read.user, read.plugin), (sent, &b"ann"[..], &b""[..]));
    }

    #[test]
    fn attributes_are_pairs() {
        let mut list = Vec::new();
        Attributes::put(&mut list, b"_client_name", b"libmariadb");
        Attributes::put(&mut list, b"program_name", b"");
        let due = [(&b"_client_name"[..], &b"libmariadb"[..]), (b"program_name", b"")];
        assert!(Attributes(&list).iter().eq(due));
        assert_eq!(Attributes(&list[..list.len() - 1]).iter().count(), 1);
    }
}

//! A request for a part of the dashboard, as far as HTTP goes.

use std::net::IpAddr;

use httparse::Header;

use super::form::Form;

/// The paths of the dashboard.
const PATHS: [&str; 5] = ["/", "/dashboard.css", "/dashboard.js", "/api/1/show", "/api/1/explain"];

/// A request for a part of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRequest {
    /// The path, one of those that there are.
    pub(crate) path: &'static str,
    /// The parameters behind the question mark, as they were sent.
    pub(crate) query: String,
    /// The header `Host`; `None` unless there is exactly one.
    pub(crate) host: Option<String>,
    /// The header `Authorization`; `None` unless there is exactly one.
    pub(crate) authorization: Option<String>,
    /// Whether the answer may be compressed.
    pub(crate) gzip: bool,
    /// The address of the caller.
    pub(crate) peer: IpAddr,
}

impl PageRequest {
    /// Reads a request with this target; `None` if the target is no part of the dashboard.
    pub(super) fn of(target: &str, headers: &[Header], peer: IpAddr) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = PATHS.into_iter().find(|known| *known == path)?;
        let only = |name: &str| {
            let mut named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            let first = named.next().filter(|_| named.next().is_none())?;
            std::str::from_utf8(first.value).ok().map(str::to_owned)
        };
        Some(Self {
            path,
            query: query.to_owned(),
            host: only("host"),
            authorization: only("authorization"),
            gzip: Form::of(headers).gzip,
            peer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_comes_twice_counts_as_none() {
        let header = |value: &'static [u8]| Header { name: "HoSt", value };
        let asked =
            |target, headers: &[Header]| PageRequest::of(target, headers, [127, 0, 0, 1].into());
        let host = |headers: &[Header]| asked("/?x=y", headers).unwrap().host;
        assert_eq!(host(&[header(b"a")]).as_deref(), Some("a"));
        assert_eq!(host(&[header(b"a"), header(b"a")]), None);
        assert_eq!(host(&[header(b"\xff")]), None);
        assert_eq!(asked("/?x=y", &[]).unwrap().query, "x=y");
        assert_eq!(asked("/x", &[]), None);
    }
}

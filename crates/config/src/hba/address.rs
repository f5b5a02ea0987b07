//! The addresses that a rule is for.

use std::net::IpAddr;

use super::tokens::{Field, Token};
use crate::machine::Network;

/// Addresses of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    All,
    /// The addresses of this machine.
    SameHost,
    /// The networks of this machine.
    SameNet,
    Within(Network),
}

impl Address {
    /// Reads an address, and its mask from the next field if the address needs one.
    pub(super) fn read<'a>(
        field: &Field,
        fields: &mut impl Iterator<Item = &'a Field>,
    ) -> Result<Self, String> {
        let [token] = field.as_slice() else {
            return Err("multiple values specified for host address: \
                        specify one address range per line"
                .to_owned());
        };
        if token.is("all") {
            return Ok(Self::All);
        }
        if token.is("samehost") {
            return Ok(Self::SameHost);
        }
        if token.is("samenet") {
            return Ok(Self::SameNet);
        }
        let text = &token.text;
        if let Some((address, bits)) = text.split_once('/') {
            let address = parsed(address)?;
            let mask = bits.parse().ok().and_then(|bits| mask_of(address, bits));
            let mask = mask.ok_or_else(|| format!("invalid CIDR mask in address \"{text}\""))?;
            return Ok(Self::Within(Network { address, mask }));
        }
        let address = parsed(text)?;
        let mask = mask(address, fields.next())?;
        Ok(Self::Within(Network { address, mask }))
    }

    /// Whether a client's address is meant, on a machine with these networks.
    pub(super) fn means(self, client: IpAddr, networks: &[Network]) -> bool {
        match self {
            Self::All => true,
            Self::SameHost => networks.iter().any(|network| network.address == client),
            Self::SameNet => networks.iter().any(|network| network.holds(client)),
            Self::Within(network) => network.holds(client),
        }
    }

    /// Whether every address that is meant is a loopback address.
    pub(super) fn is_loopback(self) -> bool {
        match self {
            Self::All | Self::SameNet => false,
            Self::SameHost => true,
            Self::Within(Network { address: IpAddr::V4(address), mask: IpAddr::V4(mask) }) => {
                address.is_loopback() && mask.octets()[0] == u8::MAX
            }
            Self::Within(Network { address, mask }) => {
                address.is_loopback() && mask_of(address, 128) == Some(mask)
            }
        }
    }
}

fn parsed(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| {
        format!("invalid IP address \"{text}\": expected an address, and no name of a host")
    })
}

/// Reads the mask of an address.
fn mask(address: IpAddr, field: Option<&Field>) -> Result<IpAddr, String> {
    let field = field.ok_or(
        "end-of-line before netmask specification: \
         specify an address range in CIDR notation, or provide a separate netmask",
    )?;
    let [Token { text, .. }] = field.as_slice() else {
        return Err("multiple values specified for netmask".to_owned());
    };
    let mask: IpAddr = text.parse().map_err(|_| format!("invalid IP mask \"{text}\""))?;
    if mask.is_ipv4() == address.is_ipv4() {
        return Ok(mask);
    }
    Err("IP address and mask do not match".to_owned())
}

/// Returns the mask of this many bits.
fn mask_of(address: IpAddr, bits: u32) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(_) => {
            let zeros = 32_u32.checked_sub(bits)?;
            IpAddr::V4(u32::MAX.checked_shl(zeros).unwrap_or(0).into())
        }
        IpAddr::V6(_) => {
            let zeros = 128_u32.checked_sub(bits)?;
            IpAddr::V6(u128::MAX.checked_shl(zeros).unwrap_or(0).into())
        }
    })
}

impl Network {
    /// Whether an address is in the network. An address of the other family never is.
    fn holds(&self, address: IpAddr) -> bool {
        match (self.address, self.mask, address) {
            (IpAddr::V4(own), IpAddr::V4(mask), IpAddr::V4(address)) => {
                (own.to_bits() ^ address.to_bits()) & mask.to_bits() == 0
            }
            (IpAddr::V6(own), IpAddr::V6(mask), IpAddr::V6(address)) => {
                (own.to_bits() ^ address.to_bits()) & mask.to_bits() == 0
            }
            _ => false,
        }
    }
}

//! Connections by tokio-postgres as they are asked for: `tls QUERY`.
//!
//! Each line of the input is one connection, as `name=value` with tabs between. For each, one line
//! is printed: `in RESULT`, or `refused SQLSTATE MESSAGE`. A connection stays open until the next
//! line.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::stdin;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Options<'a> = HashMap<&'a str, &'a str>;

/// Names of options that stand in the connection string. Files are rustls's.
const NAMES: [(&str, &str); 9] = [
    ("mode", "sslmode"),
    ("negotiation", "sslnegotiation"),
    ("binding", "channel_binding"),
    ("database", "dbname"),
    ("name", "application_name"),
    ("host", "host"),
    ("port", "port"),
    ("user", "user"),
    ("password", "password"),
];

/// Makes the configuration that rustls's manual begins with: certificates are checked, by name.
fn connector(options: &Options<'_>) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    if let Some(root) = options.get("root") {
        for certificate in CertificateDer::pem_file_iter(root)? {
            roots.add(certificate?)?;
        }
    }
    let builder = ClientConfig::builder().with_root_certificates(Arc::new(roots));
    let mut config = match (options.get("cert"), options.get("key")) {
        (Some(certificate), Some(key)) => {
            let chain = CertificateDer::pem_file_iter(certificate)?
                .collect::<std::result::Result<_, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key)?)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

async fn connect(line: &str, query: &str) -> Result<(Client, String)> {
    let options: Options<'_> = line.split('\t').filter_map(|part| part.split_once('=')).collect();
    let word = |(ours, theirs)| options.get(ours).map(|value| format!("{theirs}='{value}'"));
    let words = NAMES.into_iter().filter_map(word).collect::<Vec<_>>().join(" ");
    let (client, connection) = tokio_postgres::connect(&words, connector(&options)?).await?;
    tokio::spawn(connection);
    let told = client.query_one(query, &[]).await?.get(0);
    Ok((client, told))
}

/// Returns an error's SQLSTATE and its message with those of its causes.
fn refused(error: &(dyn Error + 'static)) -> String {
    let postgres = error.downcast_ref::<tokio_postgres::Error>();
    let state = postgres.and_then(tokio_postgres::Error::code).map_or("-", |state| state.code());
    let mut words = Vec::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    format!("refused {state} {}", words.join(" / ").replace('\n', " / "))
}

#[tokio::main]
async fn main() -> Result<()> {
    let query = env::args().nth(1).ok_or("no query")?;
    let mut open = None;
    for line in stdin().lines() {
        drop(open.take());
        match connect(&line?, &query).await {
            Ok((client, told)) => {
                println!("in {told}");
                open = Some(client);
            }
            Err(error) => println!("{}", refused(&*error)),
        }
    }
    Ok(())
}

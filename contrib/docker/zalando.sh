#!/bin/sh
# Starts Refrain as the pooler of Zalando's operator of PostgreSQL, whose variables it takes.
# Arguments are Refrain's; REFRAIN_DIR is where the files go that it writes.
set -eu
umask 077

dir=${REFRAIN_DIR:-/run/refrain}
mkdir -p "$dir"

# As the operator's own image does: without a certificate, one that nobody has signed.
cert=${CONNECTION_POOLER_CLIENT_TLS_CRT:-}
key=${CONNECTION_POOLER_CLIENT_TLS_KEY:-}
if [ -z "$cert" ]; then
    cert=$dir/server.crt
    key=$dir/server.key
    if [ ! -e "$key" ]; then
        openssl req -nodes -new -x509 -days 3650 -subj /CN=refrain \
            -keyout "$key" -out "$cert" 2>"$dir/openssl.log" || { cat "$dir/openssl.log"; exit 1; }
    fi
fi

quoted() {
    printf '%s' "$1" | sed 's/"/""/g'
}
printf '"%s" "%s"\n' "$(quoted "$PGUSER")" "$(quoted "${PGPASSWORD:-}")" >"$dir/userlist.txt"

cat >"$dir/pgbouncer.ini" <<END
[databases]
* = host=$PGHOST port=${PGPORT:-5432}

[pgbouncer]
listen_addr = *
listen_port = ${CONNECTION_POOLER_PORT:-5432}
unix_socket_dir =
pool_mode = ${CONNECTION_POOLER_MODE:-transaction}
auth_type = md5
auth_file = $dir/userlist.txt
auth_user = $PGUSER
auth_query = SELECT * FROM ${PGSCHEMA:-pooler}.user_lookup(\$1)
auth_dbname = postgres
admin_users = $PGUSER
server_tls_sslmode = require
client_tls_sslmode = require
client_tls_cert_file = $cert
client_tls_key_file = $key
${CONNECTION_POOLER_CLIENT_CA_FILE:+client_tls_ca_file = $CONNECTION_POOLER_CLIENT_CA_FILE}
default_pool_size = ${CONNECTION_POOLER_DEFAULT_SIZE:-20}
min_pool_size = ${CONNECTION_POOLER_MIN_SIZE:-0}
reserve_pool_size = ${CONNECTION_POOLER_RESERVE_SIZE:-0}
max_client_conn = ${CONNECTION_POOLER_MAX_CLIENT_CONN:-10000}
max_db_connections = ${CONNECTION_POOLER_MAX_DB_CONN:-0}
END

exec "${REFRAIN_PROGRAM:-/usr/bin/refrain}" "$dir/pgbouncer.ini" "$@"

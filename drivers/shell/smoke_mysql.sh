#!/bin/bash
# A command line client of MySQL or MariaDB: `smoke_mysql.sh NAME PROGRAM…`.
#
# Each check prints `= NAME` and then the client's output, errors too. Whether that is right is seen
# by running the same without a proxy.
set -euo pipefail
name=$1
program=("${@:2}" --no-defaults)
table="smoke_cli_$name"

if [[ $name == mariadb ]]; then
    clear=(--skip-ssl)
    encrypted=(--ssl-verify-server-cert)
else
    clear=(--ssl-mode=DISABLED)
    encrypted=(--ssl-mode=VERIFY_IDENTITY)
fi
if [[ -n ${MYSQL_SOCKET-} ]]; then
    program+=(--protocol=socket --host=localhost --socket="$MYSQL_SOCKET")
else
    program+=(--protocol=tcp --host="$MYSQL_HOST" --port="$MYSQL_PORT")
fi
if [[ -n ${MYSQL_CA-} ]]; then
    program+=("${encrypted[@]}" --ssl-ca="$MYSQL_CA")
else
    program+=("${clear[@]}")
fi
program+=(--user=app --password=secret --default-character-set=utf8mb4 --force --show-warnings)

# Errors name the file, so the folder has the same name each time.
folder=${TMPDIR:-/tmp}/refrain-smoke-$name
mkdir -p "$folder"
trap 'rm -r "$folder"' EXIT

# Runs texts, with options of the client first.
run() {
    local texts=${!#}
    # The password is no secret.
    "${program[@]}" "${@:1:$#-1}" shop <<<"$texts" 2>&1 | grep -v 'password on the command line' || true
}

check() {
    echo "= $1"
    run --table "${@:2}"
}

run "DROP TABLE IF EXISTS $table;
CREATE TABLE $table (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE, data BLOB);
INSERT INTO $table VALUES (1, 'one', 1, x'00FF'), (2, 'two', NULL, NULL);
DROP PROCEDURE IF EXISTS ${table}_pair; DROP PROCEDURE IF EXISTS ${table}_fail;
DELIMITER //
CREATE PROCEDURE ${table}_pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM $table ORDER BY id; END//
CREATE PROCEDURE ${table}_fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END//" >/dev/null

check "lookups" "SELECT * FROM $table; SELECT name FROM $table WHERE id = 2; SELECT 1 FROM $table WHERE id = 9;"
check "transactions" "BEGIN; UPDATE $table SET name = 'other'; SELECT name FROM $table; ROLLBACK; SELECT name FROM $table;"
check "new rows" "INSERT INTO $table (name) VALUES ('a'), ('b'); SELECT LAST_INSERT_ID(); SELECT ROW_COUNT();
DELETE FROM $table WHERE id > 2; SELECT ROW_COUNT();"
check "errors" "INSERT INTO $table (id, name) VALUES (1, 'again'); SELEC 1; SELECT * FROM nowhere;
INSERT INTO $table (name, number) VALUES ('zero', 1 / 0); SELECT name FROM $table WHERE id = 1;"
check "warnings" "SELECT CAST('12x' AS SIGNED), 1 / 0; SHOW WARNINGS; SHOW COUNT(*) WARNINGS;"
check "without autocommit" "SET autocommit = 0; INSERT INTO $table (name) VALUES ('undone'); ROLLBACK;
SELECT COUNT(*), @@autocommit FROM $table;"
check "settings and variables" "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT', time_zone = '+05:00', @a = 7;
SELECT \"name\" || '!', @@time_zone, @a FROM $table; CREATE TEMPORARY TABLE own SELECT 5 AS five; SELECT * FROM own;
USE mysql; SELECT DATABASE(), @a; SET NAMES latin1 COLLATE latin1_german1_ci; SELECT @@collation_connection, 'ä';"
check "several statements in a text" "DELIMITER //
SELECT 1; UPDATE $table SET number = number + 1; SELECT name FROM $table ORDER BY id//
SELECT 1; INSERT INTO $table (id, name) VALUES (1, 'again'); SELECT 2//
SELECT name FROM $table WHERE id = 1//"
check "procedures" "CALL ${table}_pair(5); CALL ${table}_fail(); CALL ${table}_pair(6);"
check "statements of SQL" "PREPARE s FROM 'SELECT name, ? FROM $table'; SET @x = 'ä'; EXECUTE s USING @x;
DEALLOCATE PREPARE s; EXECUTE s;"
check "a megabyte" "SELECT LENGTH('$(head -c 100000 /dev/zero | tr '\0' x)'); SELECT MOD(LENGTH(REPEAT('y', 3000000)), 7);"
for number in {100..5100}; do printf '%s\trow %s\n' "$number" "$number"; done >"$folder/rows.txt"
load="LOAD DATA LOCAL INFILE '$folder/rows.txt' INTO TABLE $table (id, name);"
echo "= files of the client"
for local in 1 0; do
    run --local-infile="$local" "$load SELECT COUNT(*) FROM $table; DELETE FROM $table WHERE id > 2;"
done
check "rows bit by bit" --quick "SELECT COUNT(*) FROM $table a, $table b; SELECT REPEAT(a.name, 50) FROM $table a, $table b;"
echo "= many clients"
for number in {1..24}; do
    run --skip-column-names "SELECT $number; BEGIN; SELECT name FROM $table WHERE id = 1; COMMIT;" \
        >"$folder/$number" &
done
wait
for number in {1..24}; do paste -s "$folder/$number"; done

//! Texts of queries, by what they do.

/// Reads.
pub const READS: &[&str] = &[
    "SELECT {i}",
    "SELECT 1, NULL, 'x', 1.50, 2e3, TRUE",
    "SELECT id, v, n FROM {c}t ORDER BY id",
    "SELECT * FROM {c}t WHERE id > {i} ORDER BY id",
    "SELECT * FROM shr WHERE id < {i} ORDER BY id",
    "SELECT * FROM vw ORDER BY id",
    "SELECT COUNT(*), MAX(n) FROM {c}t",
    "SELECT * FROM {c}m ORDER BY id",
    "SELECT * FROM {c}d ORDER BY id",
    "SELECT * FROM {c}n",
    "SELECT a.id, b.v FROM shr a JOIN shr b ON a.id = b.i ORDER BY 1, 2",
    "SELECT v, GROUP_CONCAT(id ORDER BY id) FROM shr GROUP BY v ORDER BY v",
    "SELECT SQL_NO_CACHE id FROM shr WHERE l = 'caf\u{e9}' ORDER BY id",
    "SELECT 'a' 'b', 'a' || 'b', \"x\"",
    "SELECT DATABASE(), USER() LIKE '{d}%', SCHEMA()",
    "SELECT 1/0, CAST('{w}' AS SIGNED)",
    "SELECT FROM_UNIXTIME(0), @@time_zone",
    "SELECT @@sql_mode, @@autocommit, @@character_set_client, @@collation_connection",
    "SELECT _latin1'x', N'y', x'41', b'01', 0x4142, 'caf\u{e9}', COLLATION('a')",
    "SELECT id FROM {c}t WHERE v = 'one' LIMIT 1",
    "SELECT id, v FROM {c}t WHERE id = {i} FOR UPDATE",
    "SELECT f_plain({i})",
    "(SELECT 1) UNION (SELECT 2) ORDER BY 1",
    "SELECT /* a comment; */ 5 -- another\n + 1 # and another",
    "SELECT /*!40000 1 + */ 1",
    // With the tables in this order. Otherwise MySQL begins with the one that it takes for the
    // smaller, by an estimate that a thread in the background makes; if it begins with the other,
    // the rows are sorted in a temporary table, and the column's definition lacks its flags.
    "SELECT STRAIGHT_JOIN id FROM {c}t WHERE id IN (SELECT id FROM shr) ORDER BY id",
    "SELECT REPEAT('a', 3000), REPEAT('b', 70)",
    "SELECT '' , NULL, ''",
    "DO {i} / 0",
    "SHOW COLUMNS FROM {c}t",
    "SHOW TABLES LIKE '{c}%'",
    "SHOW CREATE TABLE shr",
    "SHOW SESSION VARIABLES LIKE 'c%\\_connection'",
    "DESCRIBE {c}m",
    "SELECT @@session.group_concat_max_len, @@sql_select_limit, @@wait_timeout",
    "SELECT @@lc_time_names, DATE_FORMAT('2024-01-01', '%M %W')",
    "SELECT SLEEP(0)",
];

/// Changes of the client's own tables.
pub const WRITES: &[&str] = &[
    "INSERT INTO {c}t (v) VALUES ('{w}')",
    "INSERT INTO {c}t (v, n) VALUES ('{w}', {i})",
    "INSERT INTO {c}t (v, n) VALUES ('{w}', {i}), ('x', NULL), ('y', 1{i})",
    "INSERT IGNORE INTO {c}t (v, n) VALUES ('{w}', {i}), ('{w}', {i})",
    "INSERT INTO {c}t (id, v) VALUES (9{i}, 'explicit')",
    "INSERT INTO {c}t (n, v) VALUES ({i}, 'a') ON DUPLICATE KEY UPDATE v = 'again'",
    "INSERT INTO {c}m (v) VALUES ('{w}')",
    "INSERT INTO {c}m (v) VALUES ('much too long a value')",
    "INSERT INTO {c}d VALUES ({i}, 'a'), ({i}, 'b')",
    "REPLACE INTO {c}t (n, v) VALUES ({i}, 'replaced')",
    "UPDATE {c}t SET v = 'one' WHERE id < {i}",
    "UPDATE {c}t SET v = CONCAT(v, 'x') WHERE id = {i}",
    "UPDATE {c}m SET v = '{w}'",
    "UPDATE {c}t SET n = n + 1 WHERE id > {i}",
    "DELETE FROM {c}t WHERE id = {i}",
    "DELETE FROM {c}m WHERE id > {i}",
    "DELETE FROM {c}t ORDER BY id DESC LIMIT 1",
    "INSERT INTO {c}m (v) SELECT v FROM shr WHERE id < {i}",
    "INSERT INTO {c}t (v) SELECT v FROM {c}m",
    "INSERT INTO {c}t (v) VALUES (1/0)",
    "INSERT INTO {c}t (n) VALUES ('abc')",
    "INSERT INTO {c}t (v, b) VALUES ('blob', REPEAT('z', 300))",
    "INSERT INTO {c}t (v) VALUES ('r') RETURNING id",
];

/// Texts that fail.
pub const ERRORS: &[&str] = &[
    "SELEC 1",
    "SELECT * FROM nowhere",
    "SELECT nothing FROM shr",
    "SELECT (SELECT id FROM shr)",
    "INSERT INTO {c}t (id) VALUES (1), (1)",
    "INSERT INTO {c}t (v) VALUES ('much too long a value for twenty')",
    "CALL nothing()",
    "SELECT * FROM shr WHERE EXP(id * 1000) > 1",
    "SET sql_mode = 'nonsense'",
    "SET nothing = 1",
    "SIGNAL SQLSTATE '45000'",
    "ROLLBACK TO nowhere",
    "CREATE TABLE shr (id INT)",
    "DROP TABLE nowhere",
    "USE nowhere",
    "",
    "   ",
    "-- nothing",
];

/// Beginnings of transactions.
pub const BEGIN: &[&str] = &[
    "BEGIN",
    "BEGIN",
    "START TRANSACTION",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION READ WRITE",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "/* so */ begin work",
    "SET autocommit = 0",
];

/// Ends of transactions.
pub const END: &[&str] = &[
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "COMMIT AND NO CHAIN NO RELEASE",
    "COMMIT RELEASE",
    "SET autocommit = 1",
];

/// Savepoints.
pub const SAVEPOINT: &[&str] = &[
    "SAVEPOINT s{i}",
    "SAVEPOINT s1",
    "ROLLBACK TO s1",
    "ROLLBACK TO SAVEPOINT s{i}",
    "RELEASE SAVEPOINT s1",
];

/// Characteristics of the next transaction.
pub const NEXT: &[&str] = &[
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
];

/// Changes of the client's own schema.
pub const DDL: &[&str] = &[
    "CREATE TABLE {c}n (id INT, v VARCHAR(5))",
    "CREATE TABLE IF NOT EXISTS {c}n (id INT, v VARCHAR(5))",
    "DROP TABLE {c}n",
    "DROP TABLE IF EXISTS {c}n",
    "ALTER TABLE {c}d ADD COLUMN w INT DEFAULT 7",
    "ALTER TABLE {c}d DROP COLUMN w",
    "ALTER TABLE {c}d MODIFY v VARCHAR(1{i})",
    "TRUNCATE TABLE {c}m",
    "CREATE OR REPLACE VIEW {c}v AS SELECT id FROM {c}t",
    "DROP VIEW {c}v",
    "CREATE INDEX extra ON {c}d (v)",
    "DROP INDEX extra ON {c}d",
    "RENAME TABLE {c}n TO {c}n2, {c}n2 TO {c}n",
    "ANALYZE TABLE {c}d",
];

/// Calls of procedures and functions.
pub const CALLS: &[&str] = &[
    "CALL p_rows({i})",
    "CALL p_rows({i})",
    "CALL p_fail({i})",
    "CALL p_signal()",
    "CALL p_warn()",
    "CALL p_set('ANSI_QUOTES')",
    "CALL p_set('')",
    "CALL p_set('wrong')",
    "CALL p_zone('+0{i}:00')",
    "CALL p_zone('nowhere')",
    "CALL p_begin()",
    "CALL p_commit()",
    "CALL p_rows()",
    "SELECT f_set({i})",
    "SELECT f_plain({i}), f_set({i})",
];

/// Routines and a trigger that change the session and fail.
pub const FAILS: &[&str] = &[
    "CALL p_set_fails({i})",
    "SET STATEMENT time_zone = '+09:00' FOR SELECT nothing FROM shr -- _fails()",
    "CALL p_names_fails()",
    "CALL p_vars_fails({i})",
    "SELECT id, f_set_fails({i}) FROM shr",
    "INSERT INTO trg VALUES ({i}) -- _fails()",
];

/// Questions about the statement before.
pub const ASKS: &[&str] = &[
    "SHOW WARNINGS",
    "SHOW WARNINGS LIMIT 1",
    "SHOW ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SELECT @@warning_count, @@error_count",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@last_insert_id, @@identity",
    "SELECT ROW_COUNT()",
    "SELECT FOUND_ROWS()",
];

/// Texts that leave something in the session, which no other server has.
pub const PINS: &[&str] = &[
    "CREATE TEMPORARY TABLE {c}tmp (id INT)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS {c}tmp AS SELECT id FROM shr",
    "CREATE TEMPORARY TABLE {c}t (id INT, other INT)",
    "DROP TEMPORARY TABLE IF EXISTS {c}tmp, {c}t",
    "SELECT * FROM {c}tmp -- temporary",
    "INSERT INTO {c}tmp VALUES ({i}) -- temporary",
    "CALL p_temp()",
    "CALL p_vars({i})",
    "SELECT f_vars({i})",
    "CALL p_out({i}, @b, @c)",
    "SET @a = {i}",
    "SET @a = {i}, @b = @a + 1",
    "SELECT @a := {i}",
    "SELECT {i} INTO @a",
    "SELECT @a, @b, @c /* set @ */",
    "SELECT GET_LOCK('{d}{c}l', 0)",
    "SELECT RELEASE_LOCK('{d}{c}l') /* get_lock */",
    "SELECT IS_FREE_LOCK('{d}{c}l') /* get_lock */",
    "LOCK TABLES {c}t WRITE, shr READ",
    "LOCK TABLES {c}t READ, {c}m WRITE",
    "UNLOCK TABLES /* lock tables */",
    "HANDLER {c}t OPEN",
    "HANDLER {c}t READ FIRST",
    "HANDLER {c}t READ NEXT LIMIT 2",
    "HANDLER {c}t CLOSE",
    "PREPARE sq FROM 'SELECT id + ? FROM shr ORDER BY id LIMIT 3'",
    "PREPARE sq FROM 'SELEC'",
    "EXECUTE sq USING @a",
    "EXECUTE sq",
    "DEALLOCATE PREPARE sq",
    "CALL p_prepare()",
    "SELECT SQL_CALC_FOUND_ROWS id FROM shr LIMIT 2 -- temporary",
    "XA START '{d}{c}x'",
    "XA END '{d}{c}x'",
    "XA ROLLBACK '{d}{c}x'",
    "XA COMMIT '{d}{c}x' ONE PHASE",
    "SET ROLE NONE",
    "SET timestamp = 1700000000",
    "SELECT UNIX_TIMESTAMP() > 0 -- timestamp = ",
    "SET timestamp = DEFAULT",
    "SET insert_id = 20{i}",
    "SET rand_seed1 = {i}, rand_seed2 = 3",
];

/// Texts that get a long literal.
pub const LONG: &[&str] = &[
    "SELECT LENGTH('{long}')",
    "SELECT '{long}'",
    "INSERT INTO {c}t (v, b) VALUES ('large', '{long}')",
    "SELECT REVERSE('{long}'), 1 UNION ALL SELECT 'x', 2",
    "SELECT '{long}' FROM nowhere",
    "/* {long} */ SELECT 1",
];

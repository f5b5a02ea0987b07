import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Connector/J and MariaDB Connector/J: {@code SmokeMysql LIBRARY-HOW}, with statements prepared on
 * the server or not.
 *
 * <p>Each check prints {@code = NAME} and then what it got. Whether that is right is seen by running
 * the same without a proxy. A check that fails by itself prints FAILED.
 */
final class SmokeMysql {
    private static String name;
    private static String table;
    private static String lookup;
    private static String insert;
    private static String count;

    private interface Check {
        void run(Connection db) throws Exception;
    }

    private interface Step {
        void run() throws Exception;
    }

    private static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static {
        CHECKS.put("lookups", SmokeMysql::lookups);
        CHECKS.put("lookups in transactions", SmokeMysql::lookupsInTransactions);
        CHECKS.put("values of many types", SmokeMysql::valuesOfManyTypes);
        CHECKS.put("a megabyte each way", SmokeMysql::aMegabyteEachWay);
        CHECKS.put("a value sent in parts", SmokeMysql::valueInParts);
        CHECKS.put("numbers of new rows", SmokeMysql::numbersOfNewRows);
        CHECKS.put("errors leave the connection usable", SmokeMysql::errorsLeaveUsable);
        CHECKS.put("warnings", SmokeMysql::warnings);
        CHECKS.put("rollback undoes", SmokeMysql::rollbackUndoes);
        CHECKS.put("without autocommit", SmokeMysql::withoutAutocommit);
        CHECKS.put("settings and variables", SmokeMysql::settingsAndVariables);
        CHECKS.put("isolation, schema and read-only", SmokeMysql::isolation);
        CHECKS.put("several statements in a text", SmokeMysql::severalStatements);
        CHECKS.put("procedures with several results", SmokeMysql::procedures);
        CHECKS.put("batches", SmokeMysql::batches);
        CHECKS.put("files of the client", SmokeMysql::filesOfTheClient);
        CHECKS.put("rows bit by bit", SmokeMysql::rowsBitByBit);
        CHECKS.put("a cursor beside other statements", SmokeMysql::cursor);
        CHECKS.put("statements closed and prepared again", SmokeMysql::closedAndPreparedAgain);
        CHECKS.put("metadata", SmokeMysql::metadata);
        CHECKS.put("many clients", SmokeMysql::manyClients);
        CHECKS.put("a ping", SmokeMysql::ping);
    }

    private static void ensure(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static boolean isOracles() {
        return name.startsWith("connector");
    }

    private static boolean isPrepared() {
        return name.endsWith("prepared");
    }

    /** Returns the file of a store that trusts an authority, which Connector/J wants. */
    private static Path trusting(String authority) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream pem = Files.newInputStream(Path.of(authority))) {
            store.setCertificateEntry("root", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        Path file = Files.createTempFile("refrain-smoke-", ".p12");
        file.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, "secret".toCharArray());
        }
        return file;
    }

    private static String options;

    private static String optionsOfThisRun() throws Exception {
        String authority = System.getenv("MYSQL_CA");
        String all = "?user=app&password=secret&useServerPrepStmts=" + isPrepared();
        all += "&allowPublicKeyRetrieval=true";
        if (isOracles()) {
            all += authority == null ? "&sslMode=DISABLED" : "&sslMode=VERIFY_CA&trustCertificateKeyStoreType=PKCS12"
                    + "&trustCertificateKeyStorePassword=secret&trustCertificateKeyStoreUrl=" + trusting(authority).toUri();
        } else {
            all += authority == null ? "&sslMode=disable" : "&sslMode=verify-ca&serverSslCert=" + authority;
            if (System.getenv("MYSQL_SOCKET") != null) {
                all += "&localSocket=" + System.getenv("MYSQL_SOCKET");
            }
        }
        return all;
    }

    private static Connection connect(String more) throws SQLException {
        String socket = System.getenv("MYSQL_SOCKET");
        String host = socket == null ? System.getenv("MYSQL_HOST") + ":" + System.getenv("MYSQL_PORT") : "localhost";
        String scheme = isOracles() ? "jdbc:mysql://" : "jdbc:mariadb://";
        return DriverManager.getConnection(scheme + host + "/shop" + options + more);
    }

    private static String text(Object value) {
        if (value instanceof byte[]) {
            return "bytes " + Arrays.toString((byte[]) value);
        }
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    private static String all(ResultSet rows) throws SQLException {
        ResultSetMetaData data = rows.getMetaData();
        StringBuilder out = new StringBuilder();
        for (int at = 1; at <= data.getColumnCount(); at++) {
            out.append(data.getColumnLabel(at)).append(' ').append(data.getColumnTypeName(at)).append("; ");
        }
        while (rows.next()) {
            for (int at = 1; at <= data.getColumnCount(); at++) {
                out.append('[').append(text(rows.getObject(at))).append("] ");
            }
        }
        return out.toString();
    }

    /** Prints every result of a statement that has been executed. */
    private static void results(Statement statement, boolean isRows) throws SQLException {
        while (true) {
            if (isRows) {
                System.out.println(all(statement.getResultSet()));
            } else if (statement.getUpdateCount() < 0) {
                return;
            } else {
                System.out.println("changed " + statement.getUpdateCount());
            }
            isRows = statement.getMoreResults();
        }
    }

    private static void show(Connection db, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            bind(statement, values);
            results(statement, statement.execute());
        }
    }

    private static void bind(PreparedStatement statement, Object... values) throws SQLException {
        for (int at = 0; at < values.length; at++) {
            statement.setObject(at + 1, values[at]);
        }
    }

    private static Object value(Connection db, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            bind(statement, values);
            ResultSet rows = statement.executeQuery();
            return rows.next() ? rows.getObject(1) : null;
        }
    }

    private static void run(Connection db, String... texts) throws SQLException {
        try (Statement statement = db.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    private static String described(SQLException error) {
        String words = String.valueOf(error.getMessage()).replaceAll("conn=-?[0-9]+", "conn");
        return error.getClass().getSimpleName() + " " + error.getErrorCode() + " " + error.getSQLState() + " "
                + words.lines().findFirst().orElse("");
    }

    private static void refused(Step step) throws Exception {
        try {
            step.run();
            System.out.println("no error");
        } catch (SQLException error) {
            System.out.println(described(error));
        }
    }

    private static void lookups(Connection db) throws SQLException {
        for (int turn = 0; turn < 20; turn++) {
            ensure((turn % 2 == 0 ? "one" : "two").equals(value(db, lookup, 1 + turn % 2)), "wrong row");
        }
        try (PreparedStatement statement = db.prepareStatement(lookup)) {
            for (int turn = 0; turn < 20; turn++) {
                statement.setInt(1, 1 + turn % 2);
                ResultSet rows = statement.executeQuery();
                ensure(rows.next() && rows.getString(1).equals(turn % 2 == 0 ? "one" : "two"), "wrong row");
            }
        }
        show(db, "SELECT * FROM " + table + " ORDER BY id");
    }

    private static void lookupsInTransactions(Connection db) throws SQLException {
        db.setAutoCommit(false);
        for (int turn = 0; turn < 5; turn++) {
            ensure("one".equals(value(db, lookup, 1)), "wrong row");
            ensure("two".equals(value(db, lookup, 2)), "wrong row");
            db.commit();
        }
        db.setAutoCommit(true);
        show(db, lookup, 3);
    }

    private static void valuesOfManyTypes(Connection db) throws SQLException {
        LocalDateTime moment = LocalDateTime.of(2024, 2, 29, 12, 30, 15, 123456000);
        for (Object sent : Arrays.asList(7, -8L, 1L << 60, 1.5, true, "it's \\ ä€😀", "", new BigDecimal("12.340"),
                moment, moment.toLocalDate(), moment.toLocalTime(), new byte[] {0, -1, 39})) {
            show(db, "SELECT ? AS back, ? AS nothing", sent, null);
        }
        Map<String, Object> columns = new LinkedHashMap<>();
        columns.put("TINYINT", -5);
        columns.put("SMALLINT UNSIGNED", 65535);
        columns.put("BIGINT", -(1L << 62));
        columns.put("BIGINT UNSIGNED", "9223372036854775808");
        columns.put("FLOAT", 0.5f);
        columns.put("DOUBLE", 0.1);
        columns.put("DECIMAL(20,5)", new BigDecimal("-12.34000"));
        columns.put("DATE", LocalDate.of(2024, 2, 29));
        columns.put("DATETIME(6)", moment);
        columns.put("TIME(3)", "-30:00:00.250");
        columns.put("YEAR", 2024);
        columns.put("VARCHAR(20)", "ä€");
        columns.put("BLOB", new byte[] {0, -1});
        columns.put("JSON", "{\"a\": 1}");
        columns.put("BIT(9)", 3);
        columns.put("ENUM('x','y')", "y");
        List<String> definitions = new ArrayList<>();
        for (String kind : columns.keySet()) {
            int at = definitions.size();
            definitions.add("a" + at + " " + kind + ", b" + at + " " + kind);
        }
        run(db, "CREATE TABLE " + table + "_kind (" + String.join(", ", definitions) + ")");
        int at = 0;
        for (Map.Entry<String, Object> column : columns.entrySet()) {
            String both = "a" + at + ", b" + at;
            String sql = "INSERT INTO " + table + "_kind (" + both + ") VALUES (?, ?)";
            try (PreparedStatement statement = db.prepareStatement(sql)) {
                bind(statement, column.getValue(), null);
                ensure(statement.executeUpdate() == 1, "no row");
            }
            // A time below zero is a string alone.
            show(db, "SELECT CAST(a" + at + " AS CHAR), b" + at + " FROM " + table + "_kind");
            if (!column.getKey().startsWith("TIME")) {
                show(db, "SELECT " + both + " FROM " + table + "_kind WHERE 1 = ?", 1);
            }
            run(db, "DELETE FROM " + table + "_kind");
            at++;
        }
        run(db, "DROP TABLE " + table + "_kind");
    }

    private static void aMegabyteEachWay(Connection db) throws SQLException {
        for (String sent : List.of("x".repeat(1 << 20), "ä€".repeat(300_000))) {
            ensure(sent.equals(value(db, "SELECT ?", sent)), "another text");
        }
        System.out.println(value(db, "SELECT LENGTH(?)", new byte[1 << 20]));
        System.out.println(String.valueOf(value(db, "SELECT REPEAT('y', 3000000)")).length());
    }

    private static void valueInParts(Connection db) throws SQLException {
        byte[] bytes = "z".repeat(500_000).getBytes(StandardCharsets.UTF_8);
        try (PreparedStatement statement = db.prepareStatement("SELECT LENGTH(?), SHA1(?)")) {
            for (int turn = 0; turn < 3; turn++) {
                statement.setBinaryStream(1, new ByteArrayInputStream(bytes));
                statement.setBinaryStream(2, new ByteArrayInputStream(bytes, 0, 100));
                System.out.println(all(statement.executeQuery()));
            }
        }
    }

    private static void numbersOfNewRows(Connection db) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
            for (Object number : Arrays.asList(1.5, null)) {
                bind(statement, "new", number);
                System.out.println(statement.executeUpdate() + " " + all(statement.getGeneratedKeys()));
            }
        }
        try (Statement statement = db.createStatement()) {
            String several = "INSERT INTO " + table + " (name) VALUES ('a'), ('b'), ('c')";
            System.out.println(statement.executeUpdate(several, Statement.RETURN_GENERATED_KEYS));
            System.out.println(all(statement.getGeneratedKeys()));
        }
        show(db, "SELECT LAST_INSERT_ID()");
        show(db, "UPDATE " + table + " SET number = 2 WHERE name IN ('a', 'b')");
        show(db, "UPDATE " + table + " SET number = 2 WHERE name IN ('a', 'c')");
        show(db, "DELETE FROM " + table + " WHERE id > ?", 2);
    }

    private static void errorsLeaveUsable(Connection db) throws Exception {
        for (int turn = 0; turn < 2; turn++) {
            refused(() -> show(db, "INSERT INTO " + table + " (id, name) VALUES (?, 'again')", 1));
            refused(() -> show(db, "INSERT INTO " + table + " (name, number) VALUES ('zero', 1 / ?)", 0));
            refused(() -> show(db, "SELEC 1"));
            refused(() -> run(db, "SELEC 1"));
            refused(() -> show(db, "SELECT * FROM nowhere WHERE a = ?", 1));
            ensure("one".equals(value(db, lookup, 1)), "wrong row");
        }
    }

    private static void warnings(Connection db) throws SQLException {
        try (Statement statement = db.createStatement()) {
            System.out.println(all(statement.executeQuery("SELECT CAST('12x' AS SIGNED), 1/0")));
            for (SQLWarning one = statement.getWarnings(); one != null; one = one.getNextWarning()) {
                System.out.println(described(one));
            }
        }
    }

    private static void rollbackUndoes(Connection db) throws Exception {
        db.setAutoCommit(false);
        show(db, insert, "undone", 1);
        Savepoint savepoint = db.setSavepoint("s");
        show(db, insert, "undone", 2);
        db.rollback(savepoint);
        refused(() -> run(db, "INSERT INTO " + table + " (id, name) VALUES (1, 'again')"));
        show(db, count);
        db.rollback();
        db.setAutoCommit(true);
        show(db, count);
    }

    private static void withoutAutocommit(Connection other) throws SQLException {
        try (Connection db = connect("")) {
            db.setAutoCommit(false);
            show(db, insert, "kept", 1);
            show(other, count);
            db.commit();
            show(other, count);
            show(db, "DELETE FROM " + table + " WHERE id > ?", 2);
            db.rollback();
            show(other, count);
            show(db, "DELETE FROM " + table + " WHERE id > ?", 2);
            db.commit();
            show(db, "SELECT @@autocommit");
            db.commit();
        }
    }

    private static void settingsAndVariables(Connection unused) throws SQLException {
        try (Connection db = connect("&sessionVariables=sql_mode='ANSI_QUOTES,PIPES_AS_CONCAT',time_zone='-05:00'")) {
            run(db, "SET @a = 7, @b = 'ä'");
            for (int turn = 0; turn < 3; turn++) {
                show(db, "SELECT \"name\" || '!', @@time_zone, @a, @b FROM " + table + " WHERE id = ?", 2);
            }
            run(db, "CREATE TEMPORARY TABLE " + table + "_own SELECT 5 AS five");
            show(db, "SELECT five FROM " + table + "_own");
        }
    }

    private static void isolation(Connection unused) throws Exception {
        try (Connection db = connect("")) {
            db.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            db.setReadOnly(true);
            System.out.println(db.getTransactionIsolation() + " " + db.isReadOnly());
            refused(() -> show(db, insert, "new", 1));
            db.setReadOnly(false);
            db.setCatalog("mysql");
            System.out.println(db.getCatalog() + " " + value(db, "SELECT DATABASE()"));
            refused(() -> db.setCatalog("nowhere"));
            System.out.println(db.getCatalog() + " " + value(db, "SELECT DATABASE()"));
        }
    }

    private static void severalStatements(Connection single) throws Exception {
        try (Connection db = connect("&allowMultiQueries=true"); Statement statement = db.createStatement()) {
            String change = "UPDATE " + table + " SET number = number + 1";
            String texts = "SELECT 1 AS a; " + change + "; SELECT name FROM " + table + " ORDER BY id; DO 1";
            results(statement, statement.execute(texts));
            String again = "; INSERT INTO " + table + " (id, name) VALUES (1, 'again'); SELECT 2";
            refused(() -> results(statement, statement.execute("SELECT 1; " + change + again)));
            refused(() -> results(statement, statement.execute("SELECT 1; SELEC 2; SELECT 3")));
            results(statement, statement.execute(lookup.replace("?", "1")));
        }
        refused(() -> run(single, "SELECT 1; SELECT 2"));
    }

    private static void procedures(Connection db) throws Exception {
        try (CallableStatement call = db.prepareCall("{call " + table + "_pair(?)}")) {
            call.setInt(1, 5);
            results(call, call.execute());
        }
        try (CallableStatement call = db.prepareCall("{call " + table + "_out(?, ?)}")) {
            call.setInt(1, 5);
            call.registerOutParameter(2, java.sql.Types.INTEGER);
            call.execute();
            System.out.println(call.getInt(2));
        }
        for (int turn = 0; turn < 2; turn++) {
            refused(() -> {
                try (CallableStatement call = db.prepareCall("{call " + table + "_fail()}")) {
                    results(call, call.execute());
                }
            });
            show(db, lookup, 2);
        }
    }

    private static void batches(Connection unused) throws Exception {
        for (String rewrite : List.of("false", "true")) {
            try (Connection db = connect("&rewriteBatchedStatements=" + rewrite)) {
                try (PreparedStatement statement = db.prepareStatement(insert)) {
                    for (int number = 0; number < 100; number++) {
                        bind(statement, "row " + number, number / 4.0);
                        statement.addBatch();
                    }
                    System.out.println(Arrays.stream(statement.executeBatch()).filter(done -> done != 0).count());
                }
                show(db, "SELECT COUNT(*), SUM(number) FROM " + table);
                show(db, "DELETE FROM " + table + " WHERE id > ?", 2);
                try (Statement statement = db.createStatement()) {
                    statement.addBatch("UPDATE " + table + " SET number = 5");
                    statement.addBatch("INSERT INTO " + table + " (id, name) VALUES (1, 'again')");
                    statement.addBatch("UPDATE " + table + " SET number = 6");
                    statement.executeBatch();
                } catch (BatchUpdateException error) {
                    System.out.println(Arrays.toString(error.getUpdateCounts()) + " " + described(error));
                }
                show(db, "SELECT number FROM " + table);
            }
        }
    }

    private static void filesOfTheClient(Connection db) throws Exception {
        Path file = Files.createTempFile("refrain-smoke-", ".txt");
        StringBuilder rows = new StringBuilder();
        for (int number = 100; number < 20_100; number++) {
            rows.append(number).append("\trow\n");
        }
        Files.writeString(file, rows);
        String load = "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + table + " (id, name)";
        for (String local : List.of("true", "false")) {
            try (Connection own = connect("&allowLocalInfile=" + local + "&allowLoadLocalInfile=" + local)) {
                refused(() -> show(own, load));
            } catch (SQLException error) {
                System.out.println("closed in another way");
            }
            show(db, count);
            show(db, "DELETE FROM " + table + " WHERE id > ?", 2);
        }
        Files.delete(file);
    }

    private static void rowsBitByBit(Connection db) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.setFetchSize(isOracles() ? Integer.MIN_VALUE : 10);
            int taken = 0;
            String from = table + " a, " + table + " b, information_schema.collations";
            try (ResultSet rows = statement.executeQuery("SELECT a.id, REPEAT(a.name, 500) FROM " + from)) {
                while (rows.next()) {
                    taken++;
                }
            }
            ensure(taken > 500, "too few rows");
        }
        show(db, lookup, 1);
    }

    /** Connector/J has cursors of the server, with prepared statements. */
    private static void cursor(Connection unused) throws SQLException {
        try (Connection db = connect("&useCursorFetch=true&defaultFetchSize=50")) {
            String from = table + " a, " + table + " b, information_schema.collations";
            String sql = "SELECT a.id, REPEAT(a.name, 50) FROM " + from + " WHERE a.id <> ?";
            for (int turn = 0; turn < 2; turn++) {
                try (PreparedStatement statement = db.prepareStatement(sql)) {
                    statement.setInt(1, 9);
                    int taken = 0;
                    try (ResultSet rows = statement.executeQuery()) {
                        while (rows.next() && taken < 300) {
                            taken++;
                            if (isOracles() && isPrepared() && taken % 100 == 0) {
                                ensure("two".equals(value(db, lookup, 2)), "wrong row");
                            }
                        }
                    }
                    System.out.println(taken);
                }
            }
            show(db, lookup, 1);
        }
    }

    private static void closedAndPreparedAgain(Connection unused) throws SQLException {
        for (String cached : List.of("true", "false")) {
            try (Connection db = connect("&prepStmtCacheSize=5&cachePrepStmts=" + cached)) {
                for (int turn = 0; turn < 60; turn++) {
                    Object sum = value(db, "SELECT " + turn % 12 + " + ?", 1);
                    ensure(((Number) sum).intValue() == turn % 12 + 1, "wrong sum");
                }
                show(db, lookup, 2);
            }
        }
    }

    private static void metadata(Connection db) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement("SELECT id, name FROM " + table + " WHERE id = ?")) {
            ResultSetMetaData data = statement.getMetaData();
            System.out.println(data.getColumnCount() + " " + data.getColumnTypeName(2) + " "
                    + statement.getParameterMetaData().getParameterCount());
        }
        try (ResultSet columns = db.getMetaData().getColumns("shop", null, table, "%")) {
            while (columns.next()) {
                System.out.println(columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
            }
        }
    }

    private static void manyClients(Connection unused) throws Exception {
        var threads = Executors.newFixedThreadPool(24);
        List<Future<Void>> clients = new ArrayList<>();
        for (int client = 0; client < 24; client++) {
            int number = client;
            Callable<Void> work = () -> {
                try (Connection db = connect("")) {
                    for (int turn = 0; turn < 10; turn++) {
                        int sent = number * 1000 + turn;
                        Object back = value(db, "SELECT ? + 0", sent);
                        ensure(((Number) back).intValue() == sent, "another's row");
                        db.setAutoCommit(false);
                        ensure("one".equals(value(db, lookup, 1)), "wrong row");
                        db.commit();
                        db.setAutoCommit(true);
                    }
                }
                return null;
            };
            clients.add(threads.submit(work));
        }
        for (Future<Void> client : clients) {
            client.get();
        }
        threads.shutdown();
    }

    private static void ping(Connection db) throws SQLException {
        run(db, "SET @a = 5");
        ensure(db.isValid(5), "not valid");
        show(db, "SELECT @a");
    }

    private static void prepare(Connection db) throws SQLException {
        run(db,
                "DROP TABLE IF EXISTS " + table + ", " + table + "_kind",
                "CREATE TABLE " + table + " (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE)",
                "INSERT INTO " + table + " (name, number) VALUES ('one', 1), ('two', NULL)",
                "DROP PROCEDURE IF EXISTS " + table + "_pair",
                "DROP PROCEDURE IF EXISTS " + table + "_out",
                "DROP PROCEDURE IF EXISTS " + table + "_fail",
                "CREATE PROCEDURE " + table + "_pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM " + table + " ORDER BY id; END",
                "CREATE PROCEDURE " + table + "_out(n INT, OUT twice INT) BEGIN SELECT n; SET twice = 2 * n; END",
                "CREATE PROCEDURE " + table + "_fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END");
    }

    public static void main(String[] arguments) throws Exception {
        name = arguments[0];
        table = "smoke_java_" + name.replace('-', '_');
        lookup = "SELECT name FROM " + table + " WHERE id = ?";
        insert = "INSERT INTO " + table + " (name, number) VALUES (?, ?)";
        count = "SELECT COUNT(*) FROM " + table;
        options = optionsOfThisRun();
        Connection db = connect("");
        prepare(db);
        for (Map.Entry<String, Check> check : CHECKS.entrySet()) {
            System.out.println("= " + check.getKey());
            try {
                check.getValue().run(db);
            } catch (Exception | AssertionError error) {
                System.out.println("FAILED " + error);
                error.printStackTrace(System.out);
                db = connect("");
            }
        }
        db.close();
        System.exit(0);
    }
}

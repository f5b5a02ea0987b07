import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** Smoke test of pgjdbc, which prepares a statement when it has run five times. */
final class Smoke {
    private static final String TABLE = "smoke_pgjdbc";
    private static final String LOOKUP = "SELECT name FROM " + TABLE + " WHERE id = ?";
    private static final String INSERT = "INSERT INTO " + TABLE + " VALUES (?, ?)";

    private interface Check {
        void run(Connection db) throws Exception;
    }

    private interface Step {
        void run() throws SQLException;
    }

    private static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static {
        CHECKS.put("lookups", Smoke::lookups);
        CHECKS.put("lookups in transactions", Smoke::lookupsInTransactions);
        CHECKS.put("parameters of many types", Smoke::parametersOfManyTypes);
        CHECKS.put("a megabyte each way", Smoke::aMegabyteEachWay);
        CHECKS.put("insert returning", Smoke::insertReturning);
        CHECKS.put("errors leave the connection usable", Smoke::errorsLeaveUsable);
        CHECKS.put("rollback undoes", Smoke::rollbackUndoes);
        CHECKS.put("a failed transaction refuses until rolled back", Smoke::failedTransactionRefuses);
        CHECKS.put("savepoints", Smoke::savepoints);
        CHECKS.put("batches", Smoke::batches);
        CHECKS.put("an error in a batch", Smoke::errorInBatch);
        CHECKS.put("several statements in one query", Smoke::severalStatements);
        CHECKS.put("copy in and out", Smoke::copyInAndOut);
        CHECKS.put("a portal in a transaction", Smoke::portalInTransaction);
        CHECKS.put("statements closed and prepared again", Smoke::closedAndPreparedAgain);
        CHECKS.put("many clients", Smoke::manyClients);
    }

    private static void ensure(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void refused(String code, Step step) {
        try {
            step.run();
        } catch (SQLException refusal) {
            ensure(code.equals(refusal.getSQLState()), code + " expected, not " + refusal);
            return;
        }
        throw new AssertionError("nothing refused, " + code + " expected");
    }

    private static Object value(Connection db, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setObject(i + 1, parameters[i]);
            }
            ResultSet rows = statement.executeQuery();
            return rows.next() ? rows.getObject(1) : null;
        }
    }

    private static void run(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute(sql);
        }
    }

    private static void insert(Connection db, int id, String name) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(INSERT)) {
            statement.setInt(1, id);
            statement.setString(2, name);
            statement.executeUpdate();
        }
    }

    private static void lookups(Connection db) throws SQLException {
        for (int turn = 0; turn < 20; turn++) {
            ensure("one".equals(value(db, LOOKUP, 1)), "wrong row");
        }
    }

    private static void lookupsInTransactions(Connection db) throws SQLException {
        db.setAutoCommit(false);
        for (int turn = 0; turn < 10; turn++) {
            ensure("one".equals(value(db, LOOKUP, 1)), "wrong row");
            ensure("two".equals(value(db, LOOKUP, 2)), "wrong row");
            db.commit();
        }
    }

    private static void parametersOfManyTypes(Connection db) throws SQLException {
        OffsetDateTime time = OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 0, ZoneOffset.UTC);
        List<Object> values = List.of(
                7, -8L, 1L << 60, 1.5, true, "ä€", new BigDecimal("12.340"), UUID.randomUUID(), LocalDate.of(2024, 2, 29));
        for (int turn = 0; turn < 7; turn++) {
            for (Object sent : values) {
                try (PreparedStatement statement = db.prepareStatement("SELECT ?")) {
                    statement.setObject(1, sent);
                    ResultSet rows = statement.executeQuery();
                    rows.next();
                    ensure(sent.equals(rows.getObject(1, sent.getClass())), sent.toString());
                }
            }
            try (PreparedStatement statement = db.prepareStatement("SELECT ?::timestamptz, ?::bytea, ?::int[], ?::text")) {
                statement.setObject(1, time);
                statement.setBytes(2, new byte[] {0, -1});
                statement.setArray(3, db.createArrayOf("int4", new Object[] {1, null, 3}));
                statement.setString(4, null);
                ResultSet rows = statement.executeQuery();
                rows.next();
                ensure(time.isEqual(rows.getObject(1, OffsetDateTime.class)), "timestamptz");
                ensure(Arrays.equals(new byte[] {0, -1}, rows.getBytes(2)), "bytea");
                ensure(Arrays.equals(new Object[] {1, null, 3}, (Object[]) rows.getArray(3).getArray()), "int4[]");
                ensure(rows.getString(4) == null, "NULL");
            }
        }
    }

    private static void aMegabyteEachWay(Connection db) throws SQLException {
        String text = "x".repeat(1 << 20);
        ensure(text.equals(value(db, "SELECT ?::text", text)), "another text");
    }

    private static void insertReturning(Connection db) throws SQLException {
        String sql = "INSERT INTO " + TABLE + " (id, name) VALUES (10, 'ten')";
        try (PreparedStatement statement = db.prepareStatement(sql, new String[] {"id"})) {
            statement.executeUpdate();
            ResultSet keys = statement.getGeneratedKeys();
            ensure(keys.next() && keys.getInt(1) == 10, "wrong key");
        }
        try (Statement statement = db.createStatement()) {
            ensure(statement.executeUpdate("DELETE FROM " + TABLE + " WHERE id = 10") == 1, "not deleted");
        }
    }

    private static void errorsLeaveUsable(Connection db) throws SQLException {
        for (int turn = 0; turn < 8; turn++) {
            refused("23505", () -> insert(db, 1, "again"));
            refused("22012", () -> value(db, "SELECT 1 / ?", 0));
            refused("42601", () -> value(db, "SELEC ?", 0));
            ensure("one".equals(value(db, LOOKUP, 1)), "wrong row");
        }
    }

    private static void rollbackUndoes(Connection db) throws SQLException {
        db.setAutoCommit(false);
        insert(db, 11, "eleven");
        db.rollback();
        ensure(value(db, LOOKUP, 11) == null, "still there");
    }

    private static void failedTransactionRefuses(Connection db) throws SQLException {
        db.setAutoCommit(false);
        refused("22012", () -> value(db, "SELECT 1 / ?", 0));
        refused("25P02", () -> value(db, LOOKUP, 1));
        db.rollback();
        ensure("one".equals(value(db, LOOKUP, 1)), "wrong row");
    }

    private static void savepoints(Connection db) throws SQLException {
        db.setAutoCommit(false);
        insert(db, 12, "twelve");
        Savepoint savepoint = db.setSavepoint();
        refused("23505", () -> insert(db, 12, "again"));
        db.rollback(savepoint);
        ensure("twelve".equals(value(db, LOOKUP, 12)), "wrong row");
        db.rollback();
    }

    private static int[] insertAll(Connection db, int from, int to) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(INSERT)) {
            for (int id = from; id < to; id++) {
                statement.setInt(1, id);
                statement.setString(2, "row " + id);
                statement.addBatch();
            }
            return statement.executeBatch();
        }
    }

    private static void batches(Connection db) throws SQLException {
        db.setAutoCommit(false);
        for (int turn = 0; turn < 3; turn++) {
            int[] counts = insertAll(db, 100, 600);
            ensure(counts.length == 500 && Arrays.stream(counts).allMatch(count -> count == 1), "lost rows");
            db.rollback();
        }
    }

    private static void errorInBatch(Connection db) throws SQLException {
        insert(db, 150, "in the way");
        db.setAutoCommit(false);
        refused("23505", () -> insertAll(db, 100, 200));
        db.rollback();
        db.setAutoCommit(true);
        run(db, "DELETE FROM " + TABLE + " WHERE id = 150");
        ensure(Long.valueOf(2).equals(value(db, "SELECT count(*) FROM " + TABLE)), "half a batch stayed");
    }

    private static void severalStatements(Connection db) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute("SELECT 1; SELECT 2");
            List<Integer> seen = new ArrayList<>();
            do {
                ResultSet rows = statement.getResultSet();
                rows.next();
                seen.add(rows.getInt(1));
            } while (statement.getMoreResults());
            ensure(seen.equals(List.of(1, 2)), seen.toString());
        }
    }

    private static void copyInAndOut(Connection db) throws Exception {
        CopyManager copier = db.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder rows = new StringBuilder();
        for (int id = 100; id < 1100; id++) {
            rows.append(id).append("\trow ").append(id).append('\n');
        }
        String copyIn = "COPY " + TABLE + " FROM STDIN";
        ensure(copier.copyIn(copyIn, new StringReader(rows.toString())) == 1000, "lost rows");
        byte[] again = rows.toString().getBytes(StandardCharsets.UTF_8);
        refused("23505", () -> {
            var copy = copier.copyIn(copyIn);
            copy.writeToCopy(again, 0, again.length);
            copy.endCopy();
        });
        StringWriter text = new StringWriter();
        copier.copyOut("COPY (SELECT * FROM " + TABLE + " WHERE id >= 100 ORDER BY id) TO STDOUT", text);
        ensure(text.toString().contentEquals(rows), "other rows");
        run(db, "DELETE FROM " + TABLE + " WHERE id >= 100");
    }

    private static void portalInTransaction(Connection db) throws SQLException {
        db.setAutoCommit(false);
        for (int turn = 0; turn < 7; turn++) {
            try (PreparedStatement statement = db.prepareStatement("SELECT generate_series(1, ?)")) {
                statement.setInt(1, 250);
                statement.setFetchSize(100);
                ResultSet rows = statement.executeQuery();
                int count = 0;
                while (rows.next()) {
                    count++;
                }
                ensure(count == 250, "lost rows");
            }
            db.commit();
        }
    }

    private static void closedAndPreparedAgain(Connection db) throws SQLException {
        db.unwrap(PGConnection.class).setPrepareThreshold(1);
        // More texts than the driver keeps, so that it closes the oldest.
        for (int turn = 0; turn < 2; turn++) {
            for (int number = 0; number < 300; number++) {
                ensure(Integer.valueOf(turn + number).equals(value(db, "SELECT ?::int + " + number, turn)), "wrong sum");
            }
        }
    }

    private static void manyClients(Connection unused) throws Exception {
        var threads = Executors.newFixedThreadPool(40);
        List<Future<Void>> clients = new ArrayList<>();
        for (int client = 0; client < 40; client++) {
            int number = client;
            Callable<Void> work = () -> {
                try (Connection db = connect()) {
                    for (int turn = 0; turn < 20; turn++) {
                        Integer sent = number * 1000 + turn;
                        ensure(sent.equals(value(db, "SELECT ?::int + 0", sent)), "crossed answers");
                        ensure("one".equals(value(db, LOOKUP, 1)), "wrong row");
                    }
                    lookupsInTransactions(db);
                }
                return null;
            };
            clients.add(threads.submit(work));
        }
        threads.shutdown();
        for (Future<Void> client : clients) {
            client.get();
        }
    }

    private static Connection connect() throws SQLException {
        Map<String, String> to = System.getenv();
        String url = "jdbc:postgresql://" + to.get("PGHOST") + ":" + to.get("PGPORT") + "/" + to.get("PGDATABASE");
        if (to.get("PGSSLROOTCERT") != null) {
            url += "?sslmode=" + to.get("PGSSLMODE") + "&sslrootcert=" + to.get("PGSSLROOTCERT");
        }
        return DriverManager.getConnection(url, to.get("PGUSER"), to.get("PGPASSWORD"));
    }

    private static boolean passes(String name, Check check) throws SQLException {
        try (Connection db = connect()) {
            check.run(db);
            System.out.println("ok      " + name);
            return true;
        } catch (Exception | AssertionError failure) {
            System.out.println("FAILED  " + name);
            failure.printStackTrace(System.out);
            return false;
        }
    }

    public static void main(String[] arguments) throws SQLException {
        int passed = 0;
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS " + TABLE);
            run(db, "CREATE TABLE " + TABLE + " (id int PRIMARY KEY, name text NOT NULL)");
            run(db, "INSERT INTO " + TABLE + " VALUES (1, 'one'), (2, 'two')");
            for (Map.Entry<String, Check> check : CHECKS.entrySet()) {
                passed += passes(check.getKey(), check.getValue()) ? 1 : 0;
            }
            run(db, "DROP TABLE " + TABLE);
        }
        int failed = CHECKS.size() - passed;
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}

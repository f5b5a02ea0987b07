import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;

/** pgjdbc against SQLite behind PostgreSQL's protocol. */
final class Sqlite {
    private static final String TABLE = "smoke_sqlite_pgjdbc";
    private static final String LOOKUP = "SELECT name FROM " + TABLE + " WHERE id = ?";
    private static final String INSERT = "INSERT INTO " + TABLE + " (name) VALUES (?) RETURNING id";

    private interface Check {
        void run(Connection db) throws SQLException;
    }

    private static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static {
        CHECKS.put("lookups", Sqlite::lookups);
        CHECKS.put("insert returning", Sqlite::insertReturning);
        CHECKS.put("generated keys", Sqlite::generatedKeys);
        CHECKS.put("a duplicate key has its code", Sqlite::duplicateKey);
        CHECKS.put("rollback undoes", Sqlite::rollbackUndoes);
        CHECKS.put("a column that another client adds is seen", Sqlite::newColumn);
    }

    private static void ensure(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void run(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute(sql);
        }
    }

    private static String nameOf(Connection db, int id) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(LOOKUP)) {
            statement.setInt(1, id);
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? rows.getString(1) : null;
            }
        }
    }

    private static int add(Connection db, String name) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(INSERT)) {
            statement.setString(1, name);
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
                return rows.getInt(1);
            }
        }
    }

    /** More often than the five times after which pgjdbc prepares. */
    private static void lookups(Connection db) throws SQLException {
        for (int turn = 0; turn < 20; turn++) {
            ensure("one".equals(nameOf(db, 1)), "wrong row");
            ensure(nameOf(db, 7) == null, "a row that is not there");
        }
    }

    private static void insertReturning(Connection db) throws SQLException {
        ensure(add(db, "three") == 3, "another row");
        ensure("three".equals(nameOf(db, 3)), "wrong row");
    }

    private static void generatedKeys(Connection db) throws SQLException {
        String sql = "INSERT INTO " + TABLE + " (name) VALUES (?)";
        try (PreparedStatement statement = db.prepareStatement(sql, new String[] {"id"})) {
            statement.setString(1, "four");
            statement.executeUpdate();
            try (ResultSet keys = statement.getGeneratedKeys()) {
                ensure(keys.next() && keys.getLong(1) == 4, "another key");
            }
        }
    }

    private static void duplicateKey(Connection db) throws SQLException {
        for (int turn = 0; turn < 3; turn++) {
            String state = "none";
            try {
                add(db, "one");
            } catch (SQLException refusal) {
                state = refusal.getSQLState();
            }
            ensure("23505".equals(state), "expected 23505, not " + state);
            ensure("two".equals(nameOf(db, 2)), "wrong row");
        }
    }

    private static void rollbackUndoes(Connection db) throws SQLException {
        db.setAutoCommit(false);
        try {
            ensure(add(db, "five") == 5, "another row");
            db.rollback();
            ensure(nameOf(db, 5) == null, "it is still there");
            db.rollback();
        } finally {
            db.setAutoCommit(true);
        }
    }

    private static int columns(PreparedStatement statement) throws SQLException {
        statement.setInt(1, 1);
        try (ResultSet rows = statement.executeQuery()) {
            ensure(rows.next() && "one".equals(rows.getString(2)), "wrong row");
            return rows.getMetaData().getColumnCount();
        }
    }

    /** pgjdbc prepares anew by itself. */
    private static void newColumn(Connection db) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement("SELECT * FROM " + TABLE + " WHERE id = ?")) {
            for (int turn = 0; turn < 10; turn++) {
                ensure(columns(statement) == 2, "wrong columns");
            }
            try (Connection other = connect()) {
                run(other, "ALTER TABLE " + TABLE + " ADD COLUMN hp integer DEFAULT 7");
            }
            for (int turn = 0; turn < 10; turn++) {
                ensure(columns(statement) == 3, "wrong columns");
            }
        }
    }

    private static Connection connect() throws SQLException {
        Map<String, String> of = System.getenv();
        String place = of.get("PGHOST") + ":" + of.get("PGPORT") + "/" + of.get("PGDATABASE");
        return DriverManager.getConnection("jdbc:postgresql://" + place, of.get("PGUSER"), "");
    }

    public static void main(String[] arguments) throws SQLException {
        int failed = 0;
        try (Connection db = connect()) {
            run(db, "DROP TABLE IF EXISTS " + TABLE);
            run(db, "CREATE TABLE " + TABLE + " (id integer PRIMARY KEY, name text NOT NULL UNIQUE)");
            run(db, "INSERT INTO " + TABLE + " VALUES (1, 'one'), (2, 'two')");
            for (Map.Entry<String, Check> check : CHECKS.entrySet()) {
                try {
                    check.getValue().run(db);
                    System.out.println("ok      " + check.getKey());
                } catch (SQLException | AssertionError failure) {
                    failed++;
                    System.out.println("FAILED  " + check.getKey() + ": " + failure);
                }
            }
            run(db, "DROP TABLE " + TABLE);
        }
        System.out.println((CHECKS.size() - failed) + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }
}

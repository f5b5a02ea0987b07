import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;

/** The admin console by pgjdbc, which prepares a statement when it has run five times. */
final class Console {
    private static final int TIMES = 10;

    public static void main(String[] arguments) {
        try {
            run();
            System.out.println("1 passed, 0 failed");
        } catch (Exception | AssertionError failure) {
            failure.printStackTrace(System.out);
            System.out.println("0 passed, 1 failed");
            System.exit(1);
        }
    }

    private static void run() throws SQLException {
        String port = System.getenv("PGPORT");
        String url = "jdbc:postgresql://127.0.0.1:" + port + "/pgbouncer?user=postgres";
        try (Connection db = DriverManager.getConnection(url)) {
            String[] names = listings(db);
            ensure(names.length > 40, "SHOW HELP names the listings");
            for (String name : names) {
                try (PreparedStatement show = db.prepareStatement("SHOW " + name)) {
                    for (int turn = 0; turn < TIMES; turn++) read(show);
                }
            }
            db.setAutoCommit(false);
            String query = "SELECT cl_active FROM pools";
            try (PreparedStatement select = db.prepareStatement(query)) {
                for (int turn = 0; turn < TIMES; turn++) {
                    try (ResultSet rows = select.executeQuery()) {
                        ensure(rows.next() && rows.getInt(1) == 1, "one client");
                    }
                }
            }
            db.commit();
        }
    }

    private static String[] listings(Connection db) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute("SHOW HELP");
            SQLWarning warning = statement.getWarnings();
            String detail =
                ((org.postgresql.util.PSQLWarning) warning).getServerErrorMessage().getDetail();
            for (String line : detail.split("\n")) {
                String beginning = "SHOW HELP|";
                if (line.strip().startsWith(beginning)) {
                    return line.strip().substring(beginning.length()).split("\\|");
                }
            }
            throw new AssertionError("no listings in " + detail);
        }
    }

    private static void read(PreparedStatement show) throws SQLException {
        try (ResultSet rows = show.executeQuery()) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                for (int column = 1; column <= columns; column++) rows.getObject(column);
            }
        }
    }

    private static void ensure(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}

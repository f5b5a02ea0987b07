import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * The admin console by Connector/J and MariaDB Connector/J: {@code ConsoleMysql LIBRARY}, by text
 * and by statements prepared on the server.
 */
final class ConsoleMysql {
    private static final int TIMES = 10;

    public static void main(String[] arguments) {
        try {
            String product = arguments[0].equals("connector") ? "mysql" : "mariadb";
            for (boolean prepared : new boolean[] {false, true}) run(product, prepared);
            System.out.println("1 passed, 0 failed");
        } catch (Exception | AssertionError failure) {
            failure.printStackTrace(System.out);
            System.out.println("0 passed, 1 failed");
            System.exit(1);
        }
    }

    private static void run(String product, boolean prepared) throws SQLException {
        String place = System.getenv("MYSQL_HOST") + ":" + System.getenv("MYSQL_PORT");
        String tls = product.equals("mysql")
            ? "sslMode=DISABLED&allowPublicKeyRetrieval=true"
            : "sslMode=disable&allowPublicKeyRetrieval=true";
        String url = "jdbc:" + product + "://" + place + "/pgbouncer?user=app&password=secret&"
            + tls + "&useServerPrepStmts=" + prepared;
        try (Connection db = DriverManager.getConnection(url)) {
            String[] names = listings(db);
            ensure(names.length > 40, "SHOW HELP names the listings");
            for (String name : names) {
                try (PreparedStatement show = db.prepareStatement("SHOW " + name)) {
                    for (int turn = 0; turn < TIMES; turn++) read(show);
                }
            }
            db.setAutoCommit(false);
            String query = "SELECT cl_active FROM pools WHERE `database` = 'pgbouncer'";
            try (PreparedStatement select = db.prepareStatement(query)) {
                for (int turn = 0; turn < TIMES; turn++) {
                    try (ResultSet rows = select.executeQuery()) {
                        ensure(rows.next() && rows.getInt(1) == 1, "one client");
                    }
                }
            }
            db.commit();
            try (Statement wrong = db.createStatement()) {
                wrong.executeQuery("SHOW POLS");
                throw new AssertionError("no error");
            } catch (SQLException error) {
                ensure(error.getErrorCode() == 1064, error.toString());
            }
            ensure(db.isValid(5), "the session goes on");
        }
    }

    private static String[] listings(Connection db) throws SQLException {
        try (Statement statement = db.createStatement();
             ResultSet rows = statement.executeQuery("SHOW HELP")) {
            String beginning = "SHOW HELP|";
            ensure(rows.next() && rows.getString(1).startsWith(beginning), "a list of listings");
            return rows.getString(1).substring(beginning.length()).split("\\|");
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

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * Many connections of pgjdbc as it is by default, which describes portals and never statements, read one column by key, while
 * the column's type is changed. Prints how many reads there were, how many were wrong, and how many failed.
 */
final class Stale {
    private static final int CONNECTIONS = 30;
    private static final long BALANCE = 1000;
    private static final LongAdder READS = new LongAdder();
    private static final LongAdder WRONG = new LongAdder();
    private static final LongAdder FAILED = new LongAdder();

    private static Connection connect() throws SQLException {
        String port = System.getenv("PGPORT");
        String url = "jdbc:postgresql://127.0.0.1:" + port + "/" + System.getenv("PGDATABASE");
        return DriverManager.getConnection(url, System.getenv("PGUSER"), "");
    }

    public static void main(String[] args) throws Exception {
        long before = Long.parseLong(args[0]);
        long after = Long.parseLong(args[1]);
        try (Connection own = connect(); Statement say = own.createStatement()) {
            say.execute("DROP TABLE IF EXISTS acc");
            say.execute("CREATE TABLE acc (id int PRIMARY KEY, balance int)");
            say.execute("INSERT INTO acc SELECT i, " + BALANCE + " FROM generate_series(1, 100) i");
        }
        AtomicBoolean done = new AtomicBoolean();
        List<Thread> readers = new ArrayList<>();
        for (int number = 0; number < CONNECTIONS; number++) {
            Connection db = connect();
            int first = number;
            readers.add(new Thread(() -> read(db, first, done)));
        }
        readers.forEach(Thread::start);
        Thread.sleep(before);
        try (Connection own = connect(); Statement say = own.createStatement()) {
            say.execute("ALTER TABLE acc ALTER balance TYPE bigint");
        }
        Thread.sleep(after);
        done.set(true);
        for (Thread reader : readers) {
            reader.join();
        }
        System.out.println(READS + " reads " + WRONG + " wrong " + FAILED + " failed");
    }

    private static void read(Connection db, int first, AtomicBoolean done) {
        try (db; PreparedStatement select = db.prepareStatement("SELECT balance FROM acc WHERE id = ?")) {
            for (int id = first; !done.get(); id++) {
                select.setInt(1, id % 100 + 1);
                try (ResultSet rows = select.executeQuery()) {
                    READS.increment();
                    if (!rows.next() || rows.getLong(1) != BALANCE) {
                        WRONG.increment();
                    }
                } catch (SQLException error) {
                    FAILED.increment();
                }
            }
        } catch (SQLException error) {
            FAILED.increment();
        }
    }
}

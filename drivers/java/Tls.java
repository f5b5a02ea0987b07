import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/**
 * Connections by pgjdbc as they are asked for: {@code Tls QUERY}.
 *
 * <p>Each line of the input is one connection, as {@code name=value} with tabs between. For each, one
 * line is printed: {@code in RESULT}, or {@code refused SQLSTATE MESSAGE}. A connection stays open
 * until the next line.
 */
final class Tls {
    private static final Map<String, String> NAMES = Map.of(
        "mode", "sslmode",
        "root", "sslrootcert",
        "cert", "sslcert",
        "key", "sslkey",
        "negotiation", "sslNegotiation",
        "binding", "channelBinding",
        "name", "ApplicationName",
        "user", "user",
        "password", "password");

    private static Connection open;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            close();
            System.out.println(told(line, arguments[0]));
        }
        close();
    }

    private static String told(String line, String query) {
        try {
            open = connect(line);
            try (Statement statement = open.createStatement(); ResultSet rows = statement.executeQuery(query)) {
                rows.next();
                return "in " + rows.getString(1);
            }
        } catch (SQLException error) {
            StringBuilder message = new StringBuilder();
            // The reason of a failed handshake is in a cause of the exception.
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                message.append(message.isEmpty() ? "" : " / ").append(cause.getMessage());
            }
            return "refused " + error.getSQLState() + " " + message.toString().replace("\n", " / ");
        }
    }

    private static Connection connect(String line) throws SQLException {
        Map<String, String> options = new HashMap<>();
        Properties properties = new Properties();
        // Without it, pgjdbc takes a key in PEM for one of RSA.
        properties.setProperty("pemKeyAlgorithm", "EC");
        for (String part : line.split("\t")) {
            String[] pair = part.split("=", 2);
            options.put(pair[0], pair[1]);
            if (NAMES.containsKey(pair[0])) {
                properties.setProperty(NAMES.get(pair[0]), pair[1]);
            }
        }
        String place = options.get("host") + ":" + options.get("port") + "/" + options.get("database");
        return DriverManager.getConnection("jdbc:postgresql://" + place, properties);
    }

    private static void close() throws SQLException {
        if (open != null) {
            open.close();
            open = null;
        }
    }
}

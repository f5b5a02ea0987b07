// go-sql-driver: `mysql prepared` or `mysql text`, as database/sql sends statements with parameters.
//
// Each check prints `= NAME` and then what it got. Whether that is right is seen by running the same
// without a proxy. A check that fails by itself prints FAILED.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var (
	table  = "smoke_go_" + os.Args[1]
	lookup = "SELECT name FROM " + table + " WHERE id = ?"
	insert = "INSERT INTO " + table + " (name, number) VALUES (?, ?)"
	count  = "SELECT COUNT(*) FROM " + table

	insertTwo = "INSERT INTO " + table + " (name) VALUES ('a'), ('b')"
)

// A check reports its first failure by panicking; main recovers.
type check struct {
	name string
	run  func(ctx context.Context, db *sql.Conn)
}

var checks = []check{
	{"lookups", lookups},
	{"lookups in transactions", lookupsInTransactions},
	{"a statement of the program", ownStatement},
	{"values of many types", valuesOfManyTypes},
	{"a megabyte each way", aMegabyteEachWay},
	{"numbers of new rows", numbersOfNewRows},
	{"rows found rather than changed", rowsFound},
	{"errors leave the connection usable", errorsLeaveUsable},
	{"warnings", warnings},
	{"rollback undoes", rollbackUndoes},
	{"without autocommit", withoutAutocommit},
	{"settings and variables", settingsAndVariables},
	{"several statements in a text", severalStatements},
	{"procedures with several results", procedures},
	{"files of the client", filesOfTheClient},
	{"rows bit by bit", rowsBitByBit},
	{"statements closed and prepared again", closedAndPreparedAgain},
	{"many clients", manyClients},
	{"connections of the library's pool", pooled},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ensure(holds bool, what string) {
	if !holds {
		panic(errors.New(what))
	}
}

func open(change func(*mysql.Config)) *sql.DB {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = "app", "secret", "shop"
	config.Net, config.Addr = "tcp", os.Getenv("MYSQL_HOST")+":"+os.Getenv("MYSQL_PORT")
	if socket := os.Getenv("MYSQL_SOCKET"); socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	if file := os.Getenv("MYSQL_CA"); file != "" {
		pem, err := os.ReadFile(file)
		must(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		config.TLS = &tls.Config{RootCAs: roots, ServerName: os.Getenv("MYSQL_HOST")}
	}
	config.InterpolateParams = os.Args[1] == "text"
	config.Logger = &mysql.NopLogger{}
	change(config)
	connector, err := mysql.NewConnector(config)
	must(err)
	return sql.OpenDB(connector)
}

// own runs something with a connection of its own.
func own(ctx context.Context, change func(*mysql.Config), use func(*sql.Conn)) {
	db := open(change)
	defer db.Close()
	conn, err := db.Conn(ctx)
	must(err)
	defer conn.Close()
	use(conn)
}

func same(*mysql.Config) {}

func text(value any) string {
	if raw, is := value.([]byte); is {
		return fmt.Sprintf("bytes %q", raw)
	}
	return fmt.Sprintf("%T %v", value, value)
}

// results returns every result of a text, and the error that ends them.
func results(ctx context.Context, db *sql.Conn, query string, values ...any) (string, error) {
	rows, err := db.QueryContext(ctx, query, values...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var out strings.Builder
	for {
		columns, err := rows.ColumnTypes()
		must(err)
		for _, column := range columns {
			nullable, _ := column.Nullable()
			fmt.Fprintf(&out, "%s %s %v; ", column.Name(), column.DatabaseTypeName(), nullable)
		}
		cells, targets := make([]any, len(columns)), make([]any, len(columns))
		for at := range cells {
			targets[at] = &cells[at]
		}
		for rows.Next() {
			must(rows.Scan(targets...))
			for _, cell := range cells {
				fmt.Fprintf(&out, "[%s] ", text(cell))
			}
		}
		if !rows.NextResultSet() {
			return out.String(), rows.Err()
		}
		out.WriteString("| ")
	}
}

func show(ctx context.Context, db *sql.Conn, query string, values ...any) {
	got, err := results(ctx, db, query, values...)
	must(err)
	fmt.Println(got)
}

func get[T any](ctx context.Context, db *sql.Conn, query string, values ...any) (value T) {
	must(db.QueryRowContext(ctx, query, values...).Scan(&value))
	return value
}

func run(ctx context.Context, db *sql.Conn, query string, values ...any) (affected, id int64) {
	result, err := db.ExecContext(ctx, query, values...)
	must(err)
	affected, _ = result.RowsAffected()
	id, _ = result.LastInsertId()
	return affected, id
}

func changed(ctx context.Context, db *sql.Conn, query string, values ...any) {
	fmt.Println(run(ctx, db, query, values...))
}

func refused(ctx context.Context, db *sql.Conn, query string, values ...any) {
	got, err := results(ctx, db, query, values...)
	fmt.Println(got, described(err))
}

func described(err error) string {
	var refusal *mysql.MySQLError
	if errors.As(err, &refusal) {
		return fmt.Sprint(refusal.Number, " ", string(refusal.SQLState[:]), " ", refusal.Message)
	}
	return fmt.Sprint(err)
}

func lookups(ctx context.Context, db *sql.Conn) {
	for turn := range 20 {
		ensure(get[string](ctx, db, lookup, 1+turn%2) == []string{"one", "two"}[turn%2], "wrong row")
	}
	show(ctx, db, "SELECT * FROM "+table+" ORDER BY id")
}

func lookupsInTransactions(ctx context.Context, db *sql.Conn) {
	for turn := range 5 {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: turn%2 == 0, Isolation: sql.LevelReadCommitted})
		must(err)
		var name string
		must(tx.QueryRow(lookup, 1).Scan(&name))
		ensure(name == "one", "wrong row")
		must(tx.Commit())
	}
	show(ctx, db, lookup, 3)
}

func ownStatement(ctx context.Context, db *sql.Conn) {
	statement, err := db.PrepareContext(ctx, lookup)
	must(err)
	defer statement.Close()
	for turn := range 20 {
		var name string
		must(statement.QueryRow(1 + turn%2).Scan(&name))
		ensure(name == []string{"one", "two"}[turn%2], "wrong row")
	}
}

func valuesOfManyTypes(ctx context.Context, db *sql.Conn) {
	moment := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
	for _, value := range []any{7, -8, int64(1) << 60, 1.5, true, "it's \\ ä€😀", "", moment, []byte{0, 255, 39}, nil} {
		show(ctx, db, "SELECT ? AS back, ? AS nothing", value, nil)
	}
	columns := []struct {
		kind  string
		value any
	}{
		{"TINYINT", -5}, {"SMALLINT UNSIGNED", 65535}, {"BIGINT", -(int64(1) << 62)}, {"BIGINT UNSIGNED", uint64(1) << 63},
		{"FLOAT", 0.5}, {"DOUBLE", 0.1}, {"DECIMAL(20,5)", "-12.34000"}, {"DATE", "2024-02-29"}, {"DATETIME(6)", moment},
		{"TIME(3)", "-30:00:00.250"}, {"YEAR", 2024}, {"VARCHAR(20)", "ä€"}, {"BLOB", []byte{0, 255}},
		{"JSON", `{"a": 1}`}, {"BIT(9)", 3}, {"ENUM('x','y')", "y"},
	}
	definitions := make([]string, len(columns))
	for at, column := range columns {
		definitions[at] = fmt.Sprintf("a%d %s, b%d %s", at, column.kind, at, column.kind)
	}
	run(ctx, db, "CREATE TABLE "+table+"_kind ("+strings.Join(definitions, ", ")+")")
	for at, column := range columns {
		run(ctx, db, fmt.Sprintf("INSERT INTO %s_kind (a%d, b%d) VALUES (?, ?)", table, at, at), column.value, nil)
		show(ctx, db, fmt.Sprintf("SELECT a%d, b%d FROM %s_kind WHERE 1 = ?", at, at, table), 1)
		run(ctx, db, "DELETE FROM "+table+"_kind")
	}
	run(ctx, db, "DROP TABLE "+table+"_kind")
}

func aMegabyteEachWay(ctx context.Context, db *sql.Conn) {
	for _, value := range []string{strings.Repeat("x", 1<<20), strings.Repeat("ä€", 300_000)} {
		ensure(get[string](ctx, db, "SELECT ?", value) == value, "another text")
	}
	fmt.Println(get[int](ctx, db, "SELECT LENGTH(?)", make([]byte, 1<<20)))
	fmt.Println(len(get[string](ctx, db, "SELECT REPEAT('y', 3000000)")))
}

func numbersOfNewRows(ctx context.Context, db *sql.Conn) {
	changed(ctx, db, insert, "new", 1.5)
	changed(ctx, db, "INSERT INTO "+table+" (name) VALUES ('a'), ('b'), ('c')")
	show(ctx, db, "SELECT LAST_INSERT_ID()")
	changed(ctx, db, "UPDATE "+table+" SET number = 2 WHERE name IN ('a', 'b')")
	changed(ctx, db, "UPDATE "+table+" SET number = 2 WHERE name IN ('a', 'c')")
	changed(ctx, db, "DELETE FROM "+table+" WHERE id > ?", 2)
}

func rowsFound(ctx context.Context, _ *sql.Conn) {
	own(ctx, func(config *mysql.Config) { config.ClientFoundRows = true }, func(db *sql.Conn) {
		changed(ctx, db, "UPDATE "+table+" SET name = 'one' WHERE id = ?", 1)
	})
}

func errorsLeaveUsable(ctx context.Context, db *sql.Conn) {
	for range 2 {
		refused(ctx, db, "INSERT INTO "+table+" (id, name) VALUES (?, 'again')", 1)
		refused(ctx, db, "INSERT INTO "+table+" (name, number) VALUES ('zero', 1 / ?)", 0)
		refused(ctx, db, "SELEC 1")
		refused(ctx, db, "SELECT * FROM nowhere WHERE a = ?", 1)
		ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
	}
}

func warnings(ctx context.Context, db *sql.Conn) {
	show(ctx, db, "SELECT CAST('12x' AS SIGNED), 1/0")
	show(ctx, db, "SHOW WARNINGS")
}

func rollbackUndoes(ctx context.Context, db *sql.Conn) {
	tx, err := db.BeginTx(ctx, nil)
	must(err)
	_, err = tx.Exec(insert, "undone", 1)
	must(err)
	_, err = tx.Exec("INSERT INTO " + table + " (id, name) VALUES (1, 'again')")
	fmt.Println(described(err))
	must(tx.Rollback())
	show(ctx, db, count)
}

func withoutAutocommit(ctx context.Context, other *sql.Conn) {
	own(ctx, func(config *mysql.Config) { config.Params = map[string]string{"autocommit": "0"} }, func(db *sql.Conn) {
		changed(ctx, db, insert, "kept", 1)
		show(ctx, db, count)
		show(ctx, other, count)
		changed(ctx, db, "COMMIT")
		show(ctx, other, count)
		changed(ctx, db, "DELETE FROM "+table+" WHERE id > 2")
		changed(ctx, db, "ROLLBACK")
		show(ctx, other, count)
		changed(ctx, db, "DELETE FROM "+table+" WHERE id > ?", 2)
		changed(ctx, db, "COMMIT")
		show(ctx, db, "SELECT @@autocommit")
	})
}

func settingsAndVariables(ctx context.Context, _ *sql.Conn) {
	ours := map[string]string{"sql_mode": "'ANSI_QUOTES,PIPES_AS_CONCAT'", "time_zone": "'+05:00'"}
	change := func(config *mysql.Config) { config.Params, config.Collation = ours, "utf8mb4_unicode_ci" }
	own(ctx, change, func(db *sql.Conn) {
		run(ctx, db, "SET @a = 7, @b = 'ä'")
		for range 3 {
			show(ctx, db, `SELECT "name" || '!', @@time_zone, @@collation_connection, @a, @b FROM `+table+" WHERE id = ?", 2)
		}
		run(ctx, db, "CREATE TEMPORARY TABLE "+table+"_own SELECT 5 AS five")
		show(ctx, db, "SELECT five FROM "+table+"_own")
	})
}

func severalStatements(ctx context.Context, single *sql.Conn) {
	own(ctx, func(config *mysql.Config) { config.MultiStatements = true }, func(db *sql.Conn) {
		change := "UPDATE " + table + " SET number = number + 1"
		show(ctx, db, "SELECT 1 AS a; "+change+"; SELECT name FROM "+table+" ORDER BY id; DO 1")
		refused(ctx, db, "SELECT 1; "+change+"; INSERT INTO "+table+" (id, name) VALUES (1, 'again'); SELECT 2")
		refused(ctx, db, "SELECT 1; SELEC 2; SELECT 3")
		var ids, rows []int64
		must(db.Raw(func(raw any) error {
			result, err := raw.(driver.ExecerContext).ExecContext(ctx, insertTwo+"; "+change, nil)
			if err == nil {
				all := result.(mysql.Result)
				ids, rows = all.AllLastInsertIds(), all.AllRowsAffected()
			}
			return err
		}))
		fmt.Println(ids, rows)
		changed(ctx, db, "DELETE FROM "+table+" WHERE id > 2")
	})
	refused(ctx, single, "SELECT 1; SELECT 2")
}

func procedures(ctx context.Context, db *sql.Conn) {
	show(ctx, db, "CALL "+table+"_pair(?)", 5)
	for range 2 {
		refused(ctx, db, "CALL "+table+"_fail()")
		show(ctx, db, lookup, 2)
	}
}

func filesOfTheClient(ctx context.Context, db *sql.Conn) {
	var rows strings.Builder
	for number := range 20_000 {
		fmt.Fprintf(&rows, "%d\trow %d\n", number+100, number)
	}
	mysql.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader(rows.String()) })
	load := " INTO TABLE " + table + " (id, name)"
	changed(ctx, db, "LOAD DATA LOCAL INFILE 'Reader::rows'"+load)
	show(ctx, db, count)
	changed(ctx, db, "DELETE FROM "+table+" WHERE id > ?", 2)
	refused(ctx, db, "LOAD DATA LOCAL INFILE '/etc/hostname'"+load)
	show(ctx, db, count)
}

func rowsBitByBit(ctx context.Context, db *sql.Conn) {
	rows, err := db.QueryContext(ctx, "SELECT a.id, REPEAT(a.name, 500) FROM "+table+" a, "+table+" b, information_schema.collations")
	must(err)
	taken := 0
	for rows.Next() {
		taken++
	}
	must(rows.Err())
	ensure(taken > 500, "too few rows")
	ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
}

func closedAndPreparedAgain(ctx context.Context, db *sql.Conn) {
	for turn := range 100 {
		query := fmt.Sprintf("SELECT ? + %d", turn%30)
		statement, err := db.PrepareContext(ctx, query)
		must(err)
		for value := range 3 {
			var sum int
			must(statement.QueryRow(value).Scan(&sum))
			ensure(sum == value+turn%30, "wrong sum")
		}
		must(statement.Close())
	}
}

// client looks up and works in transactions, with whatever connections it gets.
func client(ctx context.Context, db *sql.DB, number int) error {
	for turn := range 10 {
		sent, back := number*1000+turn, 0
		if err := db.QueryRowContext(ctx, "SELECT ? + 0", sent).Scan(&back); err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		var name string
		if err := tx.QueryRow(lookup, 1).Scan(&name); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		if back != sent || name != "one" {
			return fmt.Errorf("%d rather than %d, %q", back, sent, name)
		}
	}
	return nil
}

func together(clients int, run func(number int) error) {
	var group sync.WaitGroup
	failures := make([]error, clients)
	for number := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			failures[number] = run(number)
		}()
	}
	group.Wait()
	must(errors.Join(failures...))
}

func manyClients(ctx context.Context, _ *sql.Conn) {
	together(24, func(number int) error {
		db := open(same)
		defer db.Close()
		db.SetMaxOpenConns(1)
		return client(ctx, db, number)
	})
}

func pooled(ctx context.Context, _ *sql.Conn) {
	db := open(same)
	defer db.Close()
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(2)
	together(24, func(number int) error { return client(ctx, db, number) })
	must(db.PingContext(ctx))
}

func prepare(ctx context.Context, db *sql.Conn) {
	for _, text := range []string{
		"DROP TABLE IF EXISTS " + table + ", " + table + "_kind",
		"CREATE TABLE " + table + " (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE)",
		"INSERT INTO " + table + " (name, number) VALUES ('one', 1), ('two', NULL)",
		"DROP PROCEDURE IF EXISTS " + table + "_pair",
		"DROP PROCEDURE IF EXISTS " + table + "_fail",
		"CREATE PROCEDURE " + table + "_pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM " + table + " ORDER BY id; END",
		"CREATE PROCEDURE " + table + "_fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END",
	} {
		run(ctx, db, text)
	}
}

// attempt runs a check and tells whether it failed.
func attempt(ctx context.Context, db *sql.Conn, check check) (failed bool) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Println("FAILED", reason)
			failed = true
		}
	}()
	fmt.Println("=", check.name)
	check.run(ctx, db)
	return false
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	db := open(same)
	conn, err := db.Conn(ctx)
	must(err)
	prepare(ctx, conn)
	for _, check := range checks {
		if attempt(ctx, conn, check) {
			conn.Close()
			conn, err = db.Conn(ctx)
			must(err)
		}
	}
}

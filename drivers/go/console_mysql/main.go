// The admin console by go-sql-driver, which sends a statement without parameters as text, and
// prepares those that a program prepares.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const times = 10

// Reads all rows, and returns their number.
func read(rows *sql.Rows, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	count := 0
	for ; rows.Next(); count++ {
		values := make([]any, len(columns))
		for index := range values {
			values[index] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return 0, err
		}
	}
	return count, rows.Err()
}

func run() error {
	address := os.Getenv("MYSQL_HOST") + ":" + os.Getenv("MYSQL_PORT")
	db, err := sql.Open("mysql", "app:secret@tcp("+address+")/pgbouncer")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var first string
	if err := db.QueryRow("SHOW HELP").Scan(&first); err == nil {
		first = strings.TrimPrefix(first, "SHOW HELP|")
	} else {
		return err
	}
	names := strings.Split(first, "|")
	if len(names) < 40 {
		return fmt.Errorf("SHOW HELP names %d listings", len(names))
	}
	for _, name := range names {
		statement, err := db.Prepare("SHOW " + name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for turn := 0; turn < times; turn++ {
			if _, err := read(statement.Query()); err != nil {
				return fmt.Errorf("%s, prepared: %w", name, err)
			}
			if _, err := read(db.Query("SHOW " + name)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := statement.Close(); err != nil {
			return err
		}
	}
	var active int64
	row := db.QueryRow("SELECT cl_active FROM pools WHERE `database` = 'pgbouncer'")
	if err := row.Scan(&active); err != nil {
		return err
	}
	if active != 1 {
		return fmt.Errorf("%d clients", active)
	}
	var told *mysql.MySQLError
	if _, err := db.Exec("SHOW POLS"); !errors.As(err, &told) || told.Number != 1064 {
		return fmt.Errorf("not error 1064: %w", err)
	}
	return db.Ping()
}

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		fmt.Println("0 passed, 1 failed")
		os.Exit(1)
	}
	fmt.Println("1 passed, 0 failed")
}

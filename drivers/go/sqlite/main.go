// Client libraries against SQLite behind PostgreSQL's protocol: `sqlite LIBRARY`, by way of database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

// A library: its name to database/sql, and how its errors tell their code.
type library struct {
	driver string
	code   func(error) string
}

var libraries = map[string]library{
	"pgx": {"pgx", func(err error) string {
		var refusal *pgconn.PgError
		if errors.As(err, &refusal) {
			return refusal.Code
		}
		return ""
	}},
	"pq": {"postgres", func(err error) string {
		var refusal *pq.Error
		if errors.As(err, &refusal) {
			return string(refusal.Code)
		}
		return ""
	}},
}

// A test holds what its checks use.
type test struct {
	ctx            context.Context
	pool           *sql.DB
	db             *sql.Conn
	code           func(error) string
	table          string
	lookup, insert string
}

var checks = []struct {
	name string
	run  func(*test)
}{
	{"lookups", (*test).lookups},
	{"a prepared statement", (*test).prepared},
	{"insert returning", (*test).insertReturning},
	{"a duplicate key has its code", (*test).duplicateKey},
	{"rollback undoes", (*test).rollbackUndoes},
	{"a column that another client adds is seen", (*test).newColumn},
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

func (t *test) run(text string) {
	_, err := t.db.ExecContext(t.ctx, text)
	must(err)
}

func (t *test) nameOf(id int) (name string) {
	err := t.db.QueryRowContext(t.ctx, t.lookup, id).Scan(&name)
	if !errors.Is(err, sql.ErrNoRows) {
		must(err)
	}
	return name
}

func (t *test) lookups() {
	for range 20 {
		ensure(t.nameOf(1) == "one", "wrong row")
		ensure(t.nameOf(7) == "", "a row that is not there")
	}
}

func (t *test) prepared() {
	statement, err := t.db.PrepareContext(t.ctx, t.lookup)
	must(err)
	defer statement.Close()
	for turn := range 20 {
		var name string
		must(statement.QueryRowContext(t.ctx, 1+turn%2).Scan(&name))
		ensure(name == []string{"one", "two"}[turn%2], "wrong row")
	}
}

func (t *test) insertReturning() {
	var id int
	must(t.db.QueryRowContext(t.ctx, t.insert, "three").Scan(&id))
	ensure(id == 3 && t.nameOf(3) == "three", "another row")
}

func (t *test) duplicateKey() {
	for range 3 {
		var id int
		err := t.db.QueryRowContext(t.ctx, t.insert, "one").Scan(&id)
		ensure(t.code(err) == "23505", fmt.Sprintf("expected 23505, not %v", err))
		ensure(t.nameOf(2) == "two", "wrong row")
	}
}

func (t *test) rollbackUndoes() {
	transaction, err := t.db.BeginTx(t.ctx, nil)
	must(err)
	var id int
	must(transaction.QueryRowContext(t.ctx, t.insert, "four").Scan(&id))
	ensure(id == 4, "another row")
	must(transaction.Rollback())
	ensure(t.nameOf(4) == "", "it is still there")
}

// columns counts those of a row.
func (t *test) columns() (int, error) {
	rows, err := t.db.QueryContext(t.ctx, "SELECT * FROM "+t.table+" WHERE id = $1", 1)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	values := make([]any, len(names))
	places := make([]any, len(names))
	for place := range values {
		places[place] = &values[place]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return 0, err
		}
	}
	return len(names), rows.Err()
}

// newColumn lets the first query after it fail: then the library prepares anew.
func (t *test) newColumn() {
	for range 10 {
		count, err := t.columns()
		must(err)
		ensure(count == 2, "wrong columns")
	}
	_, err := t.pool.ExecContext(t.ctx, "ALTER TABLE "+t.table+" ADD COLUMN hp integer DEFAULT 7")
	must(err)
	if count, err := t.columns(); err != nil {
		ensure(t.code(err) == "0A000", fmt.Sprintf("expected 0A000, not %v", err))
	} else {
		ensure(count == 3, "wrong columns")
	}
	for range 3 {
		count, err := t.columns()
		must(err)
		ensure(count == 3, "wrong columns")
	}
}

// passes runs one check and says whether it held.
func (t *test) passes(name string, run func(*test)) (passed bool) {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("FAILED  %s: %v\n", name, failure)
		}
	}()
	run(t)
	fmt.Printf("ok      %s\n", name)
	return true
}

func main() {
	name := os.Args[1]
	library := libraries[name]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pool, err := sql.Open(library.driver, "")
	must(err)
	db, err := pool.Conn(ctx)
	must(err)
	table := "smoke_sqlite_" + name
	t := &test{
		ctx: ctx, pool: pool, db: db, code: library.code, table: table,
		lookup: "SELECT name FROM " + table + " WHERE id = $1",
		insert: "INSERT INTO " + table + " (name) VALUES ($1) RETURNING id",
	}
	t.run("DROP TABLE IF EXISTS " + table)
	t.run("CREATE TABLE " + table + " (id integer PRIMARY KEY, name text NOT NULL UNIQUE)")
	t.run("INSERT INTO " + table + " VALUES (1, 'one'), (2, 'two')")
	passed := 0
	for _, check := range checks {
		if t.passes(check.name, check.run) {
			passed++
		}
	}
	t.run("DROP TABLE " + table)
	failed := len(checks) - passed
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

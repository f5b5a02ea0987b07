// Smoke test of pgx, which prepares every statement and keeps it for the connection's life.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	table  = "smoke_pgx"
	lookup = "SELECT name FROM " + table + " WHERE id = $1"
)

// A check reports its first failure by panicking; main recovers and counts.
type check struct {
	name string
	run  func(ctx context.Context, db *pgx.Conn)
}

var checks = []check{
	{"lookups", lookups},
	{"lookups in transactions", lookupsInTransactions},
	{"every way to run a query", everyWayToRun},
	{"parameters of many types", parametersOfManyTypes},
	{"a megabyte each way", aMegabyteEachWay},
	{"insert returning", insertReturning},
	{"errors leave the connection usable", errorsLeaveUsable},
	{"rollback undoes", rollbackUndoes},
	{"a failed transaction refuses until rolled back", failedTransactionRefuses},
	{"batches", batches},
	{"an error in a batch fails the rest", errorInBatch},
	{"pipelines", pipelines},
	{"copy in and out", copyInAndOut},
	{"cursor in a transaction", cursorInTransaction},
	{"statements closed and prepared again", closedAndPreparedAgain},
	{"many clients", manyClients},
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

func refused(err error, code string) {
	var refusal *pgconn.PgError
	ensure(errors.As(err, &refusal) && refusal.Code == code, fmt.Sprintf("expected %s, not %v", code, err))
}

func get[T any](ctx context.Context, db *pgx.Conn, sql string, parameters ...any) (value T) {
	must(db.QueryRow(ctx, sql, parameters...).Scan(&value))
	return value
}

func run(ctx context.Context, db *pgx.Conn, sql string, parameters ...any) {
	_, err := db.Exec(ctx, sql, parameters...)
	must(err)
}

func lookups(ctx context.Context, db *pgx.Conn) {
	for range 20 {
		ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
	}
}

func lookupsInTransactions(ctx context.Context, db *pgx.Conn) {
	for range 5 {
		must(pgx.BeginFunc(ctx, db, func(pgx.Tx) error {
			ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
			ensure(get[string](ctx, db, lookup, 2) == "two", "wrong row")
			return nil
		}))
	}
}

func everyWayToRun(ctx context.Context, db *pgx.Conn) {
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for turn := range 10 {
		for _, mode := range modes {
			ensure(get[int](ctx, db, "SELECT $1::int + 1", mode, turn) == turn+1, mode.String())
		}
	}
}

func echo[T comparable](ctx context.Context, db *pgx.Conn, kind string, value T) {
	ensure(get[T](ctx, db, "SELECT $1::"+kind, value) == value, kind)
	ensure(get[*T](ctx, db, "SELECT $1::"+kind, nil) == nil, kind+" NULL")
}

func parametersOfManyTypes(ctx context.Context, db *pgx.Conn) {
	echo(ctx, db, "int2", int16(7))
	echo(ctx, db, "int4", int32(-8))
	echo(ctx, db, "int8", int64(1)<<60)
	echo(ctx, db, "float8", 1.5)
	echo(ctx, db, "bool", true)
	echo(ctx, db, "text", "ä€")
	echo(ctx, db, "uuid", pgtype.UUID{Bytes: [16]byte{1, 2, 3}, Valid: true})
	echo(ctx, db, "date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
	bytea := get[[]byte](ctx, db, "SELECT $1::bytea", []byte{0, 255})
	ensure(bytes.Equal(bytea, []byte{0, 255}), "bytea")
	list := get[[]int32](ctx, db, "SELECT $1::int4[]", []int32{1, 2, 3})
	ensure(len(list) == 3 && list[2] == 3, "int4[]")
	object := get[map[string]int](ctx, db, "SELECT $1::jsonb", map[string]int{"a": 1})
	ensure(object["a"] == 1, "jsonb")
}

func aMegabyteEachWay(ctx context.Context, db *pgx.Conn) {
	text := strings.Repeat("x", 1<<20)
	ensure(get[string](ctx, db, "SELECT $1::text", text) == text, "another text")
}

func insertReturning(ctx context.Context, db *pgx.Conn) {
	id := get[int](ctx, db, "INSERT INTO "+table+" VALUES ($1, $2) RETURNING id", 10, "ten")
	ensure(id == 10, "wrong id")
	tag, err := db.Exec(ctx, "DELETE FROM "+table+" WHERE id = $1", 10)
	must(err)
	ensure(tag.RowsAffected() == 1, "not deleted")
}

func errorsLeaveUsable(ctx context.Context, db *pgx.Conn) {
	for range 3 {
		_, err := db.Exec(ctx, "INSERT INTO "+table+" VALUES ($1, $2)", 1, "again")
		refused(err, "23505")
		_, err = db.Exec(ctx, "SELECT 1 / $1::int", 0)
		refused(err, "22012")
		_, err = db.Exec(ctx, "SELEC $1", 0)
		refused(err, "42601")
		ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
	}
}

func rollbackUndoes(ctx context.Context, db *pgx.Conn) {
	tx, err := db.Begin(ctx)
	must(err)
	run(ctx, db, "INSERT INTO "+table+" VALUES (11, 'eleven')")
	must(tx.Rollback(ctx))
	ensure(get[int](ctx, db, "SELECT count(*) FROM "+table+" WHERE id = $1", 11) == 0, "still there")
}

func failedTransactionRefuses(ctx context.Context, db *pgx.Conn) {
	tx, err := db.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "SELECT 1 / $1::int", 0)
	refused(err, "22012")
	_, err = tx.Exec(ctx, lookup, 1)
	refused(err, "25P02")
	must(tx.Rollback(ctx))
	ensure(get[string](ctx, db, lookup, 1) == "one", "wrong row")
}

func batches(ctx context.Context, db *pgx.Conn) {
	for range 3 {
		batch := &pgx.Batch{}
		for number := range 100 {
			batch.Queue("SELECT $1::int + 0", number).QueryRow(func(row pgx.Row) error {
				var value int
				err := row.Scan(&value)
				ensure(err != nil || value == number, "crossed answers")
				return err
			})
			batch.Queue(lookup, 1)
		}
		must(db.SendBatch(ctx, batch).Close())
	}
}

func errorInBatch(ctx context.Context, db *pgx.Conn) {
	batch := &pgx.Batch{}
	batch.Queue("INSERT INTO "+table+" VALUES ($1, $2)", 12, "twelve")
	batch.Queue("SELECT 1 / $1::int", 0)
	batch.Queue("INSERT INTO "+table+" VALUES ($1, $2)", 13, "thirteen")
	refused(db.SendBatch(ctx, batch).Close(), "22012")
	ensure(get[int](ctx, db, "SELECT count(*) FROM "+table+" WHERE id > 11") == 0, "half a batch stayed")
}

func pipelines(ctx context.Context, db *pgx.Conn) {
	pipeline := db.PgConn().StartPipeline(ctx)
	for _, sql := range []string{"SELECT 1", "SELECT 1 / 0", "SELECT 3"} {
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
		must(pipeline.Sync())
	}
	var outcome []string
	for len(outcome) < 6 {
		results, err := pipeline.GetResults()
		if err != nil {
			refused(err, "22012")
			outcome = append(outcome, "error")
			continue
		}
		switch results := results.(type) {
		case *pgconn.ResultReader:
			read := results.Read()
			if read.Err != nil {
				refused(read.Err, "22012")
				outcome = append(outcome, "error")
			} else {
				outcome = append(outcome, string(read.Rows[0][0]))
			}
		case *pgconn.PipelineSync:
			outcome = append(outcome, "sync")
		}
	}
	must(pipeline.Close())
	ensure(strings.Join(outcome, " ") == "1 sync error sync 3 sync", fmt.Sprint(outcome))
}

func copyInAndOut(ctx context.Context, db *pgx.Conn) {
	rows := make([][]any, 1000)
	for number := range rows {
		rows[number] = []any{number + 100, fmt.Sprint("row ", number)}
	}
	copyIn := func() (int64, error) {
		return db.CopyFrom(ctx, pgx.Identifier{table}, []string{"id", "name"}, pgx.CopyFromRows(rows))
	}
	copied, err := copyIn()
	must(err)
	ensure(copied == 1000, "lost rows")
	_, err = copyIn()
	refused(err, "23505")
	var text bytes.Buffer
	_, err = db.PgConn().CopyTo(ctx, &text, "COPY "+table+" TO STDOUT")
	must(err)
	ensure(bytes.Count(text.Bytes(), []byte("\n")) == 1002, "lost lines")
	run(ctx, db, "DELETE FROM "+table+" WHERE id >= $1", 100)
}

func cursorInTransaction(ctx context.Context, db *pgx.Conn) {
	must(pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		run(ctx, db, "DECLARE counting CURSOR FOR SELECT generate_series(1, 250)")
		for _, expected := range []int64{100, 100, 50} {
			tag, err := tx.Exec(ctx, "FETCH 100 FROM counting")
			must(err)
			ensure(tag.RowsAffected() == expected, tag.String())
		}
		return nil
	}))
}

func closedAndPreparedAgain(ctx context.Context, db *pgx.Conn) {
	for turn := range 3 {
		statement, err := db.Prepare(ctx, "again", "SELECT $1::int + 1")
		must(err)
		ensure(len(statement.ParamOIDs) == 1 && len(statement.Fields) == 1, "wrong description")
		ensure(get[int](ctx, db, "again", turn) == turn+1, "wrong row")
		must(db.Deallocate(ctx, "again"))
	}
	must(db.DeallocateAll(ctx))
	ensure(get[string](ctx, db, lookup, 2) == "two", "wrong row")
}

func manyClients(ctx context.Context, _ *pgx.Conn) {
	var clients sync.WaitGroup
	failures := make(chan any, 40)
	for number := range 40 {
		clients.Go(func() {
			defer func() {
				if failure := recover(); failure != nil {
					failures <- failure
				}
			}()
			db, err := pgx.Connect(ctx, "")
			must(err)
			defer db.Close(ctx)
			for turn := range 20 {
				value := number*1000 + turn
				ensure(get[int](ctx, db, "SELECT $1::int + 0", value) == value, "crossed answers")
				lookupsInTransactions(ctx, db)
			}
		})
	}
	clients.Wait()
	if len(failures) > 0 {
		panic(<-failures)
	}
}

// passes runs one check and says whether it held.
func passes(ctx context.Context, db *pgx.Conn, check check) (passed bool) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("FAILED  %s: %v\n", check.name, failure)
		}
	}()
	check.run(ctx, db)
	fmt.Printf("ok      %s\n", check.name)
	return true
}

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	must(err)
	run(ctx, db, "DROP TABLE IF EXISTS "+table)
	run(ctx, db, "CREATE TABLE "+table+" (id int PRIMARY KEY, name text NOT NULL)")
	run(ctx, db, "INSERT INTO "+table+" VALUES (1, 'one'), (2, 'two')")
	passed, failed := 0, 0
	for _, check := range checks {
		if passes(ctx, db, check) {
			passed++
			continue
		}
		failed++
		db.Close(ctx)
		db, err = pgx.Connect(ctx, "")
		must(err)
	}
	run(ctx, db, "DROP TABLE "+table)
	db.Close(ctx)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func uuidOf(text string) pgtype.UUID {
	var made pgtype.UUID
	must(made.Scan(text))
	return made
}

func clock(hours, minutes, seconds, micros int64) pgtype.Time {
	return pgtype.Time{Microseconds: ((hours*60+minutes)*60+seconds)*1_000_000 + micros, Valid: true}
}

func rows() [][]any {
	bytes := make([]byte, 256)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	utc := time.UTC
	east := time.FixedZone("east", 19_800)
	return [][]any{
		{int16(1), int32(10), int64(100), 1.5, true, "one", "v", []byte{0, 1, 255, 39, 92}, uuidOf("00000000-0000-0000-0000-000000000001"),
			time.Date(2024, 2, 29, 0, 0, 0, 0, utc), clock(1, 2, 3, 0), time.Date(2024, 2, 29, 23, 59, 59, 999_999_000, utc),
			time.Date(2024, 2, 29, 1, 2, 3, 0, utc)},
		{int16(-32768), int32(-2147483648), int64(-9223372036854775808), -0.1, false, "it's \\ é中\n", "", []byte{}, uuidOf("ffffffff-ffff-ffff-ffff-ffffffffffff"),
			time.Date(1, 1, 2, 0, 0, 0, 0, utc), clock(0, 0, 0, 0), time.Date(1970, 1, 1, 0, 0, 0, 0, utc), time.Date(2024, 7, 1, 2, 30, 0, 0, east)},
		{int16(32767), int32(2147483647), int64(9223372036854775807), 1e300, true, "three", strings.Repeat("x", 20), bytes, uuidOf("12345678-1234-5678-1234-567812345678"),
			time.Date(9999, 12, 30, 0, 0, 0, 0, utc), clock(23, 59, 59, 999_999), time.Date(2024, 2, 29, 12, 0, 0, 0, utc), time.Date(1999, 12, 31, 23, 59, 59, 500_000_000, utc)},
		{nil, nil, nil, nil, false, nil, nil, nil, nil, nil, nil, nil, nil},
	}
}

// A pgxTest holds what its parts use.
type pgxTest struct {
	db     *pgx.Conn
	suffix string
}

func (t *pgxTest) table(name string) string { return "rg_" + name + t.suffix }

func (t *pgxTest) read(sql string, values ...any) error {
	found, err := t.db.Query(ctx, sql, values...)
	if err != nil {
		return err
	}
	columns := ""
	for _, field := range found.FieldDescriptions() {
		columns += fmt.Sprintf("%s %d %d, ", field.Name, field.DataTypeOID, field.DataTypeSize)
	}
	fmt.Printf("columns: %s\n", columns)
	for found.Next() {
		row, err := found.Values()
		if err != nil {
			return err
		}
		say("row", row)
	}
	fmt.Printf("status: %s\n", found.CommandTag())
	return found.Err()
}

func (t *pgxTest) run(sql string, values ...any) {
	must(t.read(sql, values...))
}

func (t *pgxTest) refused(sql string, values ...any) {
	var refusal *pgconn.PgError
	if err := t.read(sql, values...); errors.As(err, &refusal) {
		say("refused", refusal.Code)
	} else {
		say("refused", err != nil)
	}
}

func (t *pgxTest) insert(name string) string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) RETURNING id", t.table(name), names, places)
}

func (t *pgxTest) make(name, key string) {
	t.run("DROP TABLE IF EXISTS " + t.table(name))
	t.run(table(t.table(name), key))
}

func (t *pgxTest) keys() {
	for _, key := range keys {
		t.make(key.name, key.is)
		for _, row := range rows() {
			var id int64
			must(t.db.QueryRow(ctx, t.insert(key.name), row...).Scan(&id))
			say("id", id)
		}
		t.run("SELECT " + "id, " + names + " FROM " + t.table(key.name) + " ORDER BY id")
	}
	t.refused("INSERT INTO "+t.table("always")+" (id, t) VALUES ($1, $2)", 77, "given")
	t.run("INSERT INTO "+t.table("by_default")+" (id, t) VALUES ($1, $2) RETURNING id", 77, "given")
}

func (t *pgxTest) found() {
	from := "SELECT id FROM " + t.table("serial") + " WHERE "
	all := rows()
	for at, name := range strings.Split(names, ", ") {
		t.run(from+name+" = $1 ORDER BY id", all[0][at])
		t.run(from+name+" >= $1 ORDER BY id", all[0][at])
		t.run(from+name+" IN ($1, $2) ORDER BY id", all[0][at], all[1][at])
		t.run(from + name + " IS NULL ORDER BY id")
		t.run(fmt.Sprintf("SELECT count(%s), count(DISTINCT %s) FROM %s", name, name, t.table("serial")))
	}
	t.run(from+"ok AND t LIKE $1 ORDER BY n4 DESC NULLS LAST, id LIMIT $2", "%o%", 2)
	t.run("SELECT min(da), max(ts), sum(n4) FROM " + t.table("serial") + " WHERE n4 > 0")
}

func (t *pgxTest) values() {
	t.run("SELECT $1::int, $2::bigint, $3::float8, $4::text", 1, int64(1)<<40, 1.5, "text")
	row := rows()[0]
	t.run("SELECT $1::date, $2::time, $3::timestamp, $4::timestamptz", row[9], row[10], row[11], row[12])
	t.run("SELECT $1::uuid, $2::bool, $3::bytea, $4::smallint, $5::varchar", row[8], true, row[7], 5, "v")
	t.run("SELECT 1 AS a, 'x' AS c, true AS d, NULL AS e, date '2024-01-01' AS f")
}

func (t *pgxTest) jsons() {
	document := `{"a": [1, 2.5, null, true], "é": "it's"}`
	t.run("INSERT INTO "+t.table("serial")+" (js, jb) VALUES ($1, $2) RETURNING js, jb", document, document)
	var js map[string]any
	must(t.db.QueryRow(ctx, "SELECT jb FROM "+t.table("serial")+" WHERE jb IS NOT NULL").Scan(&js))
	say("document", js)
}

// A record is a row as a struct of Go's.
type record struct {
	ID int32
	Da *time.Time
	U  pgtype.UUID
	B  []byte
	T  *string
}

func (t *pgxTest) structs() {
	found, err := t.db.Query(ctx, "SELECT id, da, u, b, t FROM "+t.table("serial")+" WHERE id <= 4 ORDER BY id")
	must(err)
	all, err := pgx.CollectRows(found, pgx.RowToStructByName[record])
	must(err)
	for _, one := range all {
		say("record", []any{one.ID, one.Da == nil, one.U, one.B, one.T == nil})
	}
	arguments := pgx.NamedArgs{"t": "three", "da": time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	t.run("SELECT id FROM "+t.table("serial")+" WHERE t = @t AND da > @da", arguments)
}

func (t *pgxTest) changes() {
	t.run("UPDATE "+t.table("serial")+" SET da = $1, b = $2, u = $3, ok = $4, ts = $5, f8 = f8 * 2 WHERE id = $6 RETURNING da, b, u, ok, ts, f8",
		time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), []byte{1}, rows()[2][8], false, time.Date(2000, 1, 1, 1, 1, 0, 0, time.UTC), 1)
	big := t.table("bigserial")
	t.run("INSERT INTO "+big+" (id, t) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET t = excluded.t RETURNING id, t", 1, "upsert")
	t.run("DELETE FROM "+big+" WHERE id = $1 RETURNING *", 2)
	t.refused("INSERT INTO "+big+" (id, t) VALUES ($1, $2)", 1, "again")
	t.refused("INSERT INTO "+big+" (ok) VALUES ($1)", nil)
	t.refused("INSERT INTO " + big + " (da) VALUES ('2024-02-30')")
	t.refused("INSERT INTO " + big + " (n2) VALUES (40000)")
	t.refused("SELECT 1/0")
	must(pgx.BeginTxFunc(ctx, t.db, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(own pgx.Tx) error {
		_, err := own.Exec(ctx, "INSERT INTO "+big+" (t) VALUES ('kept')")
		must(err)
		inner := pgx.BeginFunc(ctx, own, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, "INSERT INTO "+big+" (t) VALUES ('undone')")
			must(err)
			return errors.New("stop")
		})
		say("inner", inner.Error())
		return nil
	}))
	t.run("SELECT t FROM " + big + " WHERE t IN ('kept', 'undone')")
}

func (t *pgxTest) batches() {
	t.make("batch", "SERIAL")
	batch := &pgx.Batch{}
	for _, row := range rows() {
		batch.Queue(t.insert("batch"), row...).QueryRow(func(row pgx.Row) error {
			var id int32
			err := row.Scan(&id)
			say("id", id)
			return err
		})
	}
	batch.Queue("SELECT count(*) FROM " + t.table("batch")).QueryRow(func(row pgx.Row) error {
		var count int64
		err := row.Scan(&count)
		say("count", count)
		return err
	})
	must(t.db.SendBatch(ctx, batch).Close())
	batch = &pgx.Batch{}
	batch.Queue("INSERT INTO " + t.table("batch") + " (t) VALUES ('undone')")
	batch.Queue("SELECT 1/0")
	var refusal *pgconn.PgError
	say("failed", errors.As(t.db.SendBatch(ctx, batch).Close(), &refusal))
	say("code", refusal.Code)
	t.run("SELECT count(*) FROM " + t.table("batch"))
}

func (t *pgxTest) copies() {
	t.make("copied", "SERIAL")
	columns := strings.Split(names, ", ")
	count, err := t.db.CopyFrom(ctx, pgx.Identifier{t.table("copied")}, columns, pgx.CopyFromRows(rows()))
	must(err)
	say("copied", count)
	t.run("SELECT id, " + names + " FROM " + t.table("copied") + " ORDER BY id")
	var text strings.Builder
	tag, err := t.db.PgConn().CopyTo(ctx, &text, "COPY (SELECT * FROM "+t.table("copied")+" ORDER BY id) TO STDOUT (FORMAT csv)")
	must(err)
	say(tag.String(), text.String())
}

func (t *pgxTest) pools() {
	pool, err := pgxpool.New(ctx, "")
	must(err)
	defer pool.Close()
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := pool.Exec(ctx, t.insert("serial"), rows()[0]...)
			done <- err
		}()
	}
	for range 8 {
		must(<-done)
	}
	t.run("SELECT count(*) FROM " + t.table("serial") + " WHERE n4 = 10")
}

// pgxRound makes a round in each of pgx's ways to run a query.
func pgxRound() {
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgx.ParseConfig("")
		must(err)
		config.DefaultQueryExecMode = mode
		db, err := pgx.ConnectConfig(ctx, config)
		must(err)
		t := &pgxTest{db: db, suffix: strings.ReplaceAll(mode.String(), " ", "_")}
		parts := []struct {
			name string
			run  func()
		}{
			{"keys", t.keys}, {"found", t.found}, {"values", t.values}, {"jsons", t.jsons}, {"structs", t.structs},
			{"changes", t.changes}, {"batches", t.batches}, {"copies", t.copies}, {"pools", t.pools},
		}
		for _, each := range parts {
			part(each.name+", "+mode.String(), each.run)
		}
		must(db.Close(ctx))
	}
}

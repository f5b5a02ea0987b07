// Connections by pgx as they are asked for: `tls QUERY`.
//
// Each line of the input is one connection, as `name=value` with tabs between. For each, one line
// is printed: `in RESULT`, or `refused SQLSTATE MESSAGE`. A connection stays open until the next
// line.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgx has libpq's names.
var names = map[string]string{
	"mode":        "sslmode",
	"root":        "sslrootcert",
	"cert":        "sslcert",
	"key":         "sslkey",
	"negotiation": "sslnegotiation",
	"binding":     "channel_binding",
	"database":    "dbname",
	"name":        "application_name",
}

func connect(ctx context.Context, line, query string) (*pgx.Conn, string, error) {
	var words []string
	for _, part := range strings.Split(line, "\t") {
		name, value, _ := strings.Cut(part, "=")
		if ours, found := names[name]; found {
			name = ours
		}
		words = append(words, fmt.Sprintf("%s='%s'", name, value))
	}
	db, err := pgx.Connect(ctx, strings.Join(words, " "))
	if err != nil {
		return nil, "", err
	}
	var told string
	err = db.QueryRow(ctx, query).Scan(&told)
	return db, told, err
}

func main() {
	ctx := context.Background()
	lines := bufio.NewScanner(os.Stdin)
	var open *pgx.Conn
	for lines.Scan() {
		if open != nil {
			open.Close(ctx)
		}
		db, told, err := connect(ctx, lines.Text(), os.Args[1])
		open = db
		var reported *pgconn.PgError
		switch {
		case err == nil:
			fmt.Println("in", told)
		case errors.As(err, &reported):
			fmt.Println("refused", reported.Code, strings.ReplaceAll(err.Error(), "\n", " / "))
		default:
			fmt.Println("refused -", strings.ReplaceAll(err.Error(), "\n", " / "))
		}
	}
	if open != nil {
		open.Close(ctx)
	}
}

// The admin console by pgx, which prepares each command and reads numbers in binary.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const times = 10

func run(ctx context.Context) error {
	config, err := pgx.ParseConfig("dbname=pgbouncer")
	if err != nil {
		return err
	}
	help := ""
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { help = notice.Detail }
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if _, err := db.Exec(ctx, "SHOW HELP"); err != nil {
		return err
	}
	var names []string
	for _, line := range strings.Split(help, "\n") {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "SHOW HELP|"); found {
			names = strings.Split(rest, "|")
		}
	}
	if len(names) < 40 {
		return fmt.Errorf("SHOW HELP names %d listings", len(names))
	}
	for _, name := range names {
		for turn := 0; turn < times; turn++ {
			rows, err := db.Query(ctx, "SHOW "+name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for rows.Next() {
				if _, err := rows.Values(); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			if err := rows.Err(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	var active int64
	if err := db.QueryRow(ctx, "SELECT sum(cl_active) FROM pools").Scan(&active); err != nil {
		return err
	}
	if active != 1 {
		return fmt.Errorf("%d clients", active)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
		fmt.Println("0 passed, 1 failed")
		os.Exit(1)
	}
	fmt.Println("1 passed, 0 failed")
}

// The benchmark's look-up with go-sqlite3, with its statement cache and without.
//
// Reads lines "CACHE CONNECTIONS GOROUTINES QUERIES" and answers each with the CPU time of the
// process for it, in nanoseconds a query. So its passes can take turns with those of others.
package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"log"
	"os"
	"sync"
	"syscall"

	_ "github.com/mattn/go-sqlite3"
)

const lookup = "SELECT id, name, hp, attack FROM monster WHERE id = ?"

type key struct{ cache, connections int }

func main() {
	pools := map[key]*sql.DB{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var cache, connections, goroutines, queries int
		if _, err := fmt.Sscan(lines.Text(), &cache, &connections, &goroutines, &queries); err != nil {
			log.Fatal(err)
		}
		of := key{cache, connections}
		if pools[of] == nil {
			pools[of] = open(os.Args[1], of)
			run(pools[of], goroutines, queries/10)
		}
		before := cpu()
		run(pools[of], goroutines, queries)
		fmt.Println((cpu() - before) / int64(queries))
	}
}

func open(path string, of key) *sql.DB {
	name := fmt.Sprintf("file:%s?_journal_mode=WAL&_busy_timeout=5000&_stmt_cache_size=%d", path, of.cache)
	db, err := sql.Open("sqlite3", name)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(of.connections)
	db.SetMaxIdleConns(of.connections)
	return db
}

func run(db *sql.DB, goroutines, queries int) {
	var all sync.WaitGroup
	for number := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for query := number; query < queries; query += goroutines {
				var id, hp, attack int64
				var name string
				row := db.QueryRow(lookup, query%1000+1)
				if err := row.Scan(&id, &name, &hp, &attack); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	all.Wait()
}

func cpu() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

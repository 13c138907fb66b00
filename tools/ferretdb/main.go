// Command ferretdb is a server of MongoDB's protocol that keeps its data in SQLite, for the tests of contrib/mongofeed. It is a
// module of its own, so that nobody who uses the library has its dependencies, and a program, so that they are
// built without the race detector.
//
//	ferretdb ADDRESS FOLDER
//
// It prints its address when it takes connections, and ends at an interrupt.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb:", err)
		os.Exit(1)
	}
}

func run() error {
	const arguments = 3
	if len(os.Args) != arguments {
		return fmt.Errorf("usage: ferretdb ADDRESS FOLDER")
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + filepath.ToSlash(os.Args[2]) + "/",
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println(server.MongoDBURI())
	return server.Run(ctx)
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// ordeal is what a server of the example is put through, which makes a row of a table.
type ordeal struct {
	name string
	// measure starts the server, with a folder for its files, and returns the cells of the row.
	measure func(ctx context.Context, room, binary string) ([]string, error)
}

// fill adds a row for each ordeal of the example, and before each one of the example of the commit, if one is given.
func (t *table) fill(ctx context.Context, commit string, ordeals []ordeal) (string, error) {
	room, err := os.MkdirTemp("", "ordeal")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(room) }()
	servers, err := exampleServers(ctx, room, commit)
	if err != nil {
		return "", err
	}
	for _, ordeal := range ordeals {
		for _, server := range servers {
			fmt.Fprintf(os.Stderr, "\n%s, %s", ordeal.name, server.name)
			cells, err := ordeal.measure(ctx, room, server.binary)
			if err != nil {
				return "", err
			}
			t.add(append([]string{ordeal.name + ", " + server.name}, cells...)...)
		}
	}
	return t.String(), nil
}

// exampleServer is a built example.
type exampleServer struct{ name, binary string }

// exampleServers builds the example of the commit, if one is given, and that of the checkout.
func exampleServers(ctx context.Context, room, commit string) ([]exampleServer, error) {
	root, err := output(ctx, "", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	var all []exampleServer
	if commit != "" {
		before := filepath.Join(room, "checkout")
		if _, err := output(ctx, "", "git", "clone", "--quiet", "--shared", root, before); err != nil {
			return nil, err
		}
		if _, err := output(ctx, before, "git", "checkout", "--quiet", commit); err != nil {
			return nil, err
		}
		then := exampleServer{"then", filepath.Join(room, "then")}
		if _, err := output(ctx, before, "go", "build", "-o", then.binary, "./example"); err != nil {
			return nil, err
		}
		all = append(all, then)
	}
	now := exampleServer{"now", filepath.Join(room, "now")}
	if _, err := output(ctx, root, "go", "build", "-o", now.binary, "./example"); err != nil {
		return nil, err
	}
	return append(all, now), nil
}

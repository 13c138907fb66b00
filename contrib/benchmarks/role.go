package main

import "os"

// The processes that this program starts besides its own, named by a variable of the environment.
const (
	role = "BENCHMARKS_ROLE"
	// roleServer serves the requests of windows, and roleSender sends them.
	roleServer = "server"
	roleSender = "sender"
)

// play does what the environment names, and reports whether it names anything.
func play() (bool, error) {
	switch os.Getenv(role) {
	case roleServer:
		return true, serveWindows(os.Stdin, os.Stdout)
	case roleSender:
		return true, sendWindows(os.Stdin, os.Stdout)
	default:
		return false, nil
	}
}

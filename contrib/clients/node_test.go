package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
)

// node adds the clients of Node.js to those of Go, once `npm ci` has installed them: see `make clients`.
var node = flag.Bool("node", false, "drive the clients of Node.js too, which npm has to have installed in the directory node")

// sendNode returns a client of Node.js by the name that node/drive.mjs knows.
func sendNode(name string) func(context.Context, call) (outcome, error) {
	return func(ctx context.Context, c call) (outcome, error) {
		argument, err := json.Marshal(struct {
			Client string `json:"client"`
			call
		}{name, c})
		if err != nil {
			return outcome{}, err
		}
		command := exec.CommandContext(ctx, "node", "drive.mjs", string(argument))
		command.Dir = "node"
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Run(); err != nil {
			return outcome{}, fmt.Errorf("%w\n%s", err, stderr.String())
		}
		var saw outcome
		err = json.Unmarshal(stdout.Bytes(), &saw)
		return saw, err
	}
}

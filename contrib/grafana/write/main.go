// Command write writes the dashboards into the folder boards of the folder where it is started.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/grafana"
)

func main() {
	if err := write("boards"); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

// write makes the folder anew: a board that is no longer there leaves no file.
func write(folder string) error {
	boards, err := grafana.Boards()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o750); err != nil {
		return err
	}
	for i := range boards {
		text, err := json.MarshalIndent(&boards[i], "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, *boards[i].Uid+".json"), append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	return nil
}

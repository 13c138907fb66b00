package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// A change and its entry are one transaction. The export is verified elsewhere, and a row that was changed is named.
func Example() {
	ctx := context.Background()
	storage := &memory{} // in the service: a transaction of PostgreSQL or SQLite
	for revision := range uint64(3) {
		_, err := audit.Append(ctx, storage, audit.Entry{
			Time: time.Now(), Actor: audit.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: "oidc"},
			Action: "policy.publish", Target: "policy", RevisionBefore: revision, RevisionAfter: revision + 1, Reason: "free gets more",
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	var export bytes.Buffer
	if err := audit.Export(ctx, storage, &export); err != nil {
		log.Fatal(err)
	}
	report, err := audit.Verify(bytes.NewReader(export.Bytes()), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Rows, "rows follow from each other")

	lines := bytes.SplitAfter(export.Bytes(), []byte("\n"))
	_, err = audit.Verify(bytes.NewReader(bytes.Join(lines[:2], nil)), &report.Last)
	fmt.Println(err)
	lines[1] = bytes.Replace(lines[1], []byte("ada"), []byte("eve"), 1)
	_, err = audit.Verify(bytes.NewReader(bytes.Join(lines, nil)), nil)
	fmt.Println(err)
	// Output:
	// 3 rows follow from each other
	// audit: row 2 is missing: the log ends before it, and row 2 is known
	// audit: row 1 does not fit its hash and the row before: one of them was changed, removed or inserted
}

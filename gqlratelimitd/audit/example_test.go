package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
)

// A change and its entry are one transaction; somebody keeps a checkpoint elsewhere, and can tell later that the log has only been added to.
func Example() {
	ctx := context.Background()
	database := &audittest.Memory{} // in the service: PostgreSQL or SQLite
	private, public, err := audit.NewKey("log.example.org")
	if err != nil {
		log.Fatal(err)
	}
	key, err := audit.ParseKey(private)
	if err != nil {
		log.Fatal(err)
	}
	publish := func(revision uint64) error {
		return database.Change(ctx, func(ctx context.Context, storage audit.Storage) error {
			_, err := audit.Append(ctx, storage, audit.Entry{
				Time: time.Now(), Actor: audit.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: "oidc"},
				Action: "policy.publish", Target: "policy", RevisionBefore: revision - 1, RevisionAfter: revision, Reason: "free gets more",
			})
			return err
		})
	}
	signer, err := audit.NewSigner(database, audit.SignerConfig{Key: key})
	if err != nil {
		log.Fatal(err)
	}
	if err := publish(1); err != nil {
		log.Fatal(err)
	}
	kept, err := signer.Sign(ctx, time.Now()) // each minute, by Signer.Run
	if err != nil {
		log.Fatal(err)
	}
	if err := publish(2); err != nil {
		log.Fatal(err)
	}
	if _, err := signer.Sign(ctx, time.Now()); err != nil {
		log.Fatal(err)
	}
	var export bytes.Buffer
	if err := audit.Export(ctx, database, &export); err != nil {
		log.Fatal(err)
	}

	forged := bytes.Replace(export.Bytes(), []byte("ada"), []byte("eve"), 1)
	if err := check(&export, public, kept); err != nil {
		log.Fatal(err)
	}
	fmt.Println(check(bytes.NewReader(forged), public, kept))
	// Output:
	// 2 entries are as they were
	// audit: entry 0: the next checkpoint is of 1 other ones
}

// check verifies an export with nothing but a key and a checkpoint that was kept.
func check(export io.Reader, public string, kept []byte) error {
	report, err := audit.Verify(export, audit.VerifyConfig{
		Keys: []string{public},
		Kept: [][]byte{kept},
	})
	if err != nil {
		return err
	}
	fmt.Println(report.Newest.Size, "entries are as they were")
	return nil
}

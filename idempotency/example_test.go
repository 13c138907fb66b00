package idempotency_test

import (
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

func ExampleParseKey() {
	key, err := idempotency.ParseKey(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
	fmt.Println(key, err)
	_, err = idempotency.ParseKey("short")
	fmt.Println(errors.Is(err, idempotency.ErrKeyInvalid), err)
	// Output:
	// 8e03978e-40d5-43dd-bc93-6894a57f9324 <nil>
	// true idempotency: invalid key: 5 characters long, want 8 to 128; a UUID fits
}

func ExampleClaim() {
	fingerprint, err := idempotency.NewFingerprint("mutation { checkout }", "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	claim := idempotency.Claim{
		Subject:     "ann",
		Key:         "order-4711",
		Fingerprint: fingerprint,
		Attempt:     idempotency.NewAttemptID(),
	}
	fmt.Println(len(claim.RecordName()))
	// Output: 22
}

package bucket_test

import "time"

// What the documentation says.
const (
	maxOverrides      = 128
	maxOverrideBytes  = 32 << 10
	maxOverrideOwner  = 512
	maxOverrideReason = 256
	maxOverrideActor  = 128
	maxPeriod         = 10 * 366 * 24 * time.Hour
	maxReceiptAge     = time.Minute
)

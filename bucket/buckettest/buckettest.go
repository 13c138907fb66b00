// Package buckettest holds the contract of bucket.Store as tests: every store gives the same answers
// to the same calls. A store of one's own passes when
//
//	buckettest.Run(t, func(t *testing.T) buckettest.Harness { … })
//
// passes. The tests set the time, and never wait for it.
package buckettest

import "testing"

// Run checks a store against the contract. It calls open for each test.
func Run(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	run(t, open, chargeTests, timeTests, settleTests, policyTests, windowTests, windowChangeTests, softTests, debtTests, claimTests, claimEndTests, claimCrowdTests, candidateTests)
}

// RunOverrides checks a store that is a bucket.OverrideStore as well against the contract of override
// records. It calls open for each test.
func RunOverrides(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	run(t, open, overrideTests, overrideRecordTests, candidateOverrideTests, debtOverrideTests)
}

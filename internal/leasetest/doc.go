// Package leasetest holds no code but tests: processes that lease parts of one bucket from a real Redis are killed, stopped and cut off, their
// Redis is frozen, lost and replaced, and every decision that they have made is held against what one bucket would have admitted. docs/reports/scale.md has its
// figures.
package leasetest

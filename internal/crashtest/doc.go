// Package crashtest holds no code but a test: servers are killed at random moments, and the test counts
// what their clients were charged and how often their mutations took effect. docs/reports/faults.md has its
// figures.
package crashtest

// Package faults breaks stores while a fleet of gqlgen servers is under load, and counts what their clients
// saw and what was admitted beyond the budget. It has nothing but tests, which stand above the root package;
// docs/reports/faults.md is their table.
package faults

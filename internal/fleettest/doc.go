// Package fleettest holds no code but tests: a fleet of follower processes has one revision after the other while connections
// end, the Redis restarts, fails over and is emptied. docs/reports/control-plane.md has its tables.
package fleettest

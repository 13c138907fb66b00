// Package overload holds no code but tests: servers that share a dependency, which becomes slow, with the adaptive throttle and
// without. docs/reports/throttle.md has its table.
package overload

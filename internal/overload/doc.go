// Package overload holds no code but tests: servers that share a dependency, which becomes slow, with the adaptive throttle, with the thresholds of
// recipes, and with neither. docs/reports/throttle.md has its table.
package overload

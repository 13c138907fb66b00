// Package source reads what the command works on: schemas, operations, variables and pricing
// configurations. Files come from people and repositories that the command knows nothing about, so each
// has a bound in size and in tokens, directories are walked without following links, and a mistake is a
// [cli.FileError] with its file, line and column.
package source

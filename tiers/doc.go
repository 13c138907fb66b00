// Package tiers turns a policy document and a subject into buckets.
//
// A [Policy] names tiers, the limits of each, and the tenants that are exceptions. It is written as
// Go values, or as YAML or JSON and read by [Parse]; [JSONSchema] describes the document. [Compile]
// checks it and makes a [Snapshot], which never changes and is looked up without locks. [Load] does
// both. Package policy keeps a snapshot in step with a file, or with another feed: it loads without a restart, and stays with
// the last good policy while the file is wrong.
//
// [Snapshot.Rules] answers what a [Subject] may do: its tier, its maximum cost, and its buckets.
// Limits merge by name in the order tier, tenant; those of an operation rule are budgets of their
// own, which a tenant has for the operation and pays together with its other ones.
//
// Package simulate replays recorded costs against a policy, so that a team can observe first and enforce later.
//
// Every mistake of a document is reported at once, with its line, as a [*PolicyError].
package tiers

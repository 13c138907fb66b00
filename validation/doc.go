// Package validation has the rules by which a server checks documents before anything has a price, each in a time that
// grows with the document and not with its square or cube:
//
//	srv.SetValidationRulesFn(validation.Rules)
//
// These are the rules of gqlparser, with two in another form. The check that fields can be merged
// (https://spec.graphql.org/draft/#sec-Field-Selection-Merging) compares all pairs of fields there, again in each
// selection set above them: 6 kB of valid query, one field over and over, keep a processor busy for half a second.
// [OverlappingFieldsCanBeMerged] compares sets. The bound of introspection follows each path through fragments there: 1.6 kB
// keep a processor busy for more than ten seconds, and each further fragment doubles that. [MaxIntrospectionDepth] reads each
// fragment once.
//
// What takes long besides is ended: [MaxErrors] after 100 fields that are not there, and [MaxValues] where values are
// nested so that gqlparser evaluates them over and over. gqlparser walks a fragment again from each operation and each
// fragment that spreads it, which package edge bounds.
package validation

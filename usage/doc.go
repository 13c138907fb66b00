// Package usage has what is counted of tenants beside their budgets, and the record in which it is reported.
//
// The store counts points, requests, other units and root fields in the step that charges them (bucket.Usage), where the tier asks for
// it. A collector finds the hours that the store has counted ([Source.Found]) and reads them.
//
// A refusal charges nothing, so each instance counts its own refusals by the hour ([Refusals]), in absolute numbers that only grow. Whoever
// keeps them takes the larger of two numbers of a row, so that it does not matter in which order and how often they are read.
//
// [Series] and [Row] are the record in which the daemon serves usage and clients read it.
package usage

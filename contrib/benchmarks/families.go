package main

import "strings"

// families are documents that are known to be dear, in the schema of the search.
var families = []struct {
	name string
	text func() string
}{
	{"lists", func() string { return "query q0{" + repeat(320, " x%[1]d:list{id}") + "}" }},
	{"aliases of a scalar", func() string { return "query q0{" + repeat(660, " x%[1]d:id") + "}" }},
	{"one field, merged", func() string { return "query q0{" + strings.Repeat("id ", 1990) + "}" }},
	{"fields that are not there", func() string { return "query q0{" + strings.Repeat("idx ", 1990) + "}" }},
	{"fragments in a chain", func() string {
		return "query q0{...f0}" + repeat(240, " fragment f%[1]d on Query{...f%[2]d}") + " fragment f240 on Query{id}"
	}},
	{"fragments of introspection, each twice", func() string {
		return "query q0{__schema{...f0}}" + repeat(40, " fragment f%[1]d on __Schema{...f%[2]d ...f%[2]d}") + " fragment f40 on __Schema{__typename}"
	}},
	{"operations with one fragment", func() string {
		return repeat(160, " query q%[1]d{...f}") + " fragment f on Query{" + repeat(330, " x%[1]d:id") + "}"
	}},
	{"a long name in a fragment of many operations", func() string {
		return repeat(160, " query q%[1]d{...f}") + " fragment f on Query{" + strings.Repeat("x", 60_000) + "}"
	}},
	{"fields that are not there, in a fragment of 100 fragments", func() string {
		return "query q0{...f0}" + repeat(100, " fragment f%[1]d on Query{...f%[2]d ...g}") + " fragment f100 on Query{id} fragment g on Query{" +
			strings.Repeat("w ", 600) + "}"
	}},
	{"a fragment of aliases in objects with other names", func() string {
		return "query q0{" + repeat(150, " x%[1]d:query{...f ...f}") + "} fragment f on Query{" + repeat(120, " y%[1]d:id") + "}"
	}},
	{"a long name within the bounds of the front door", func() string {
		return repeat(16, " query q%[1]d{...f0}") + repeat(100, " fragment f%[1]d on Query{...f%[2]d}") +
			" fragment f100 on Query{" + strings.Repeat("x", 60_000) + "}"
	}},
	{"nested objects in a fragment of many operations", func() string {
		return repeat(160, " query q%[1]d{...f}") + " fragment f on Query{list(where:" + strings.Repeat("{not:", 220) + "{}" +
			strings.Repeat("}", 220) + "){id}}"
	}},
}

// beginnings are genomes that a search begins with: the known families, as far as they can be told in genes. What is found
// is at least as dear.
func beginnings() []*genome {
	// The places of the type Query among those that fragments are on, and of what is chosen in it.
	const (
		onQuery, onSchema      = 4, 9
		id, listWhere, notSelf = 1, 20, 4
		next, behind           = 0, 1
	)
	spreading := func(picks ...int) []*gene {
		var in []*gene
		for _, pick := range picks {
			in = append(in, &gene{Pick: pick, Marks: spread})
		}
		return in
	}
	long := []*gene{{Marks: wrong, Long: 60_000}}
	nested := []*gene{{Pick: listWhere, Marks: argued, In: []*gene{{Pick: notSelf, Deep: 200}}}}
	many := []*gene{{Pick: id, Times: 600, Marks: renamed}}
	missing := []*gene{{Times: 600, Marks: wrong}}
	deep := []*gene{{Deep: 400, In: many}}
	var all []*genome
	for _, in := range [][]*gene{long, nested, many, missing, deep} {
		for _, operations := range []int{1, 12, 160} {
			all = append(all,
				&genome{Operations: []*gene{{Times: operations, In: spreading(next)}}, Fragments: []*gene{{Pick: onQuery, In: in}}},
				&genome{
					Operations: []*gene{{Times: operations, In: spreading(next)}},
					Fragments:  []*gene{{Pick: onQuery, Times: 100, In: spreading(next, behind)}, {Pick: onQuery, In: in}},
				})
		}
	}
	schema := []*gene{{Pick: 6, In: spreading(next)}}
	for _, fragments := range []int{14, 18, 40} {
		all = append(all, &genome{
			Operations: []*gene{{In: schema}}, Fragments: []*gene{{Pick: onSchema, Times: fragments, In: spreading(next, next)}},
		})
	}
	// Genomes share no genes.
	for i := range all {
		all[i] = all[i].clone()
	}
	return all
}

package tiers

// Usage is what is counted of the operations of a tenant, for a bill or a report, in the step that charges them.
type Usage uint8

const (
	// CountNothing is the default.
	CountNothing Usage = iota
	// CountTotals counts points, requests and all other units that an operation takes.
	CountTotals
	// CountFields counts root fields as well.
	CountFields
)

// String returns the word of the document: none, totals or fields.
func (u Usage) String() string {
	switch u {
	case CountTotals:
		return "totals"
	case CountFields:
		return "fields"
	case CountNothing:
	}
	return "none"
}

// usages are the words of the document. Empty is that of the tier, which is none by default.
var usages = map[string]Usage{"": CountNothing, "none": CountNothing, "totals": CountTotals, "fields": CountFields}

// usage checks the word of a tier or an exception.
func (c *checker) usage(at path, word string) {
	if _, ok := usages[word]; !ok {
		c.fail(at.to("usage"), "usage %s is unknown; none, totals or fields fits", echo(word))
	}
}

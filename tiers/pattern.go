package tiers

import "strings"

// problemOfPattern returns what is wrong with the spelling of an operation rule, or nothing.
//
// The type is never a pattern: an operation has one root type, which bounds how many rules can match
// it.
func problemOfPattern(spelling string) string {
	if len(spelling) > MaxLongName {
		return tooLong("an operation", spelling, MaxLongName)
	}
	if isDocument(spelling) {
		if !isDocumentID(spelling) {
			return "not the id of a document; sha256: and 64 digits of 0-9 and a-f fit"
		}
		return ""
	}
	const fits = "a root type, a dot and a field fit, such as Mutation.createOrder, Mutation.* or Query.search*"
	root, field, found := strings.Cut(spelling, ".")
	switch {
	case !found, !isName(root), !isName(strings.ReplaceAll(field, "*", "_")):
		return "not an operation; " + fits
	case strings.Contains(field, "**"):
		return "two * in a row mean no more than one"
	}
	return ""
}

// isName reports whether the text is a Name of the GraphQL specification, section 2.1.9.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && c != '_' && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return text != ""
}

// rootType returns what stands before the dot.
func rootType(coordinate string) string {
	root, _, _ := strings.Cut(coordinate, ".")
	return root
}

// matches reports whether the text fits the pattern, in which * stands for any characters, also
// none. It takes at most len(pattern) × len(text) steps.
func matches(pattern, text string) bool {
	p, t := 0, 0
	// star is where the last * stands, and resume from where the text after it is tried next.
	star, resume := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

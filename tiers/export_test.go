package tiers

// StripIgnored is what ids of documents are hashes of.
func StripIgnored(text string) string { return stripIgnored(text) }

// PartOf is the part of an operation rule's bucket that belongs to a value of an argument, empty if there is too much to fold.
func PartOf(by string, value any) string {
	part, _ := division{by: by}.part(value, &folder{})
	return part
}

// NormalText is the spelling of a text by which accounts are told apart.
func NormalText(text string) string { return new(folder).text(text) }

// Folded returns how many bytes one operation folds for values of an argument, and for how many of them it is allowed to.
func Folded(by string, values ...any) (bytes, allowed int) {
	var texts folder
	for _, value := range values {
		if _, ok := (division{by: by}).part(value, &texts); ok {
			allowed++
		}
	}
	return texts.spent, allowed
}

// MaxFolded is how many bytes one operation may fold.
const MaxFolded = maxFolded

// Compatible returns the first bytes of a text in NFKC.
func Compatible(text string) string { return new(folder).compatible(text) }

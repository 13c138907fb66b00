package tiers

// StripIgnored is what ids of documents are hashes of.
func StripIgnored(text string) string { return stripIgnored(text) }

// PartOf is the part of an operation rule's bucket that belongs to a value of an argument.
func PartOf(by string, value any) string { return division{by: by}.part(value) }

// NormalText is the spelling of a text by which accounts are told apart.
func NormalText(text string) string { return normalText(text) }

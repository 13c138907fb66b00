package tiers

// StripIgnored is what ids of documents are hashes of.
func StripIgnored(text string) string { return stripIgnored(text) }

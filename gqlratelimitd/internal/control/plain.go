package control

import "regexp"

var (
	// ours are names of packages of the daemon before what they say, wherever one error has another one in it.
	ours = regexp.MustCompile(`(?m)(^|: |; )(?:(?:access|audit|control|store): )+(?:(?:denied|not approved): )?`)
	// theirs are those of the library, before the first word or behind the field that is wrong: further on they may be keys of a document.
	theirs = regexp.MustCompile(`^([a-z -]+: )?(?:bucket|policy|tiers): `)
)

// Plain returns what an error says to who uses an API, without the names of packages before it: who says so helps only who reads the log.
func Plain(text string) string {
	return theirs.ReplaceAllString(ours.ReplaceAllString(text, "$1"), "$1")
}

package tiers

import "unicode/utf8"

const (
	// maxFolded is how many bytes of values one operation may have folded where limits are divided by them. Sixteen texts of
	// maxPartText bytes take less than two thirds of it. An operation that needs more is refused.
	maxFolded = 256 << 10
	// textFolded is counted for each text that is not remembered, beside its bytes.
	textFolded = 16
	// hashedForFolded is how many bytes are hashed in the time in which one is folded, and foundForFolded how many of a text that is remembered.
	hashedForFolded, foundForFolded = 16, 256
)

// folder folds the texts of one operation. It remembers them, since a variable may stand under many aliases, and it counts what
// that takes. Of what a folder returns that has spent too much, no part may be made. The zero value has spent nothing.
type folder struct {
	spent int
	known map[string]string
}

// spend counts bytes. It returns false if they are too many.
func (f *folder) spend(n int) bool {
	f.spent += n
	return f.within()
}

func (f *folder) within() bool { return f.spent <= maxFolded }

// text returns the normal spelling of a text.
func (f *folder) text(text string) string {
	// One character more than may be read says that there are more.
	text = text[:min(len(text), maxFolded+utf8.UTFMax)]
	if !f.spend(len(text) / foundForFolded) {
		return ""
	}
	normal, found := f.known[text]
	if !found && f.spend(textFolded) {
		normal = f.normalText(text)
		if f.known == nil {
			f.known = make(map[string]string)
		}
		f.known[text] = normal
	}
	return normal
}

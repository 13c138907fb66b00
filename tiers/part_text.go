package tiers

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxKeptText is how many of them are kept to be normalised: a character may be written in four times the bytes. It is also
	// how many are kept of what normalisation makes of them, since one character may become eighteen.
	maxKeptText = 4 * maxPartText
	// maxPasses is how often a text is folded at most, until nothing changes: capitals join marks, of which some may be left.
	maxPasses = 4
)

// normalText returns one spelling of a text: compatibility characters, case, characters that nobody sees, blanks around it and
// the spelling of a whole number make no other text. It is cut after maxPartText bytes.
//
// What nobody sees is dropped before anything is cut, however much there is: a server that drops it
// would else take for one account what is cut at another place with each further one.
//
// The folder counts each byte that is read, and each that is folded.
func (f *folder) normalText(text string) string {
	text = f.visible(text)
	for range maxPasses {
		if !f.within() {
			return ""
		}
		folded := strings.TrimSpace(f.visible(f.fold(text)))
		if folded == text {
			break
		}
		text = folded
	}
	if number, ok := wholeNumber(text); ok {
		text = number
	}
	return text[:min(len(text), maxPartText)]
}

// visible returns the first bytes of a text without blanks before it and characters that nobody sees.
func (f *folder) visible(text string) string {
	var b strings.Builder
	last := 0
	defer func() { f.spend(last) }()
	for at, r := range text {
		last = at
		switch {
		case b.Len() >= maxKeptText:
			return b.String()
		case invisible(r), b.Len() == 0 && unicode.IsSpace(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// invisible reports whether a character is a control or a default-ignorable one, and no blank.
func invisible(r rune) bool {
	switch {
	case unicode.IsSpace(r):
		return false
	case r <= unicode.MaxASCII:
		return unicode.IsControl(r)
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
}

// fold folds compatibility characters and case. It goes by capitals, since some small letters share one.
func (f *folder) fold(text string) string {
	if ascii(text) {
		f.spend(len(text))
		return strings.ToLower(text)
	}
	capitals := f.compatible(strings.ToUpper(f.compatible(text)))
	return f.compatible(cases.Fold().String(strings.ToLower(capitals)))
}

// compatible returns the first bytes of a text in NFKC. It stops after maxKeptText bytes.
func (f *folder) compatible(text string) string {
	f.spend(len(text))
	kept := make([]byte, maxKeptText)
	n, _, _ := norm.NFKC.Transform(kept, []byte(text), true) // Its one error is that not all fits.
	return string(kept[:n])
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// wholeNumber returns one spelling of a whole number, in whatever length.
func wholeNumber(spelled string) (number string, ok bool) {
	digits := strings.TrimLeft(strings.TrimLeft(spelled, "+-"), "0")
	sign := len(spelled) - len(strings.TrimLeft(spelled, "+-"))
	switch {
	case sign > 1 || sign == len(spelled) || strings.Trim(digits, "0123456789") != "":
		return "", false
	case digits == "":
		return "0", true
	case spelled[0] == '-':
		return "-" + digits, true
	default:
		return digits, true
	}
}

package tiers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Parts of operation rules begin with what they are, so that no user is called like the value of an argument.
const (
	partUser   = "user:"
	partValue  = "by:"
	partAcross = "across:"
)

const (
	// maxPartText is how many bytes of a text tell it from others.
	maxPartText = 1024
	// maxPartValues is how many values in an object or a list tell it from others.
	maxPartValues = 256
	// maxPartDepth is how deep they may be nested.
	maxPartDepth = 16
)

// UserPart returns the [bucket.Owner.Part] of an operation rule's bucket that belongs to a user.
func UserPart(user string) string { return partUser + user }

// part returns the part of a rule's bucket that belongs to a value by which it is divided: a hash, because the
// value may be a secret, and as long as its client likes.
//
// Values that a server could take for the same have one part ([folder]), since another spelling would be a full budget for
// the account that is attacked. Two values that are really two share a budget at worst.
//
// It returns false if the operation has more to fold than it may.
func (d division) part(value any, texts *folder) (part string, ok bool) {
	p := parter{hash: sha256.New(), left: maxPartValues, texts: texts}
	p.text(d.by)
	p.value(value, 0)
	if !texts.within() {
		return "", false
	}
	sum := p.hash.Sum(nil)
	prefix := partValue
	if d.across {
		prefix = partAcross
	}
	return prefix + hex.EncodeToString(sum[:16]), true
}

// parter hashes values, each with its kind and its length.
type parter struct {
	hash  hash.Hash
	left  int
	texts *folder
}

const (
	partMissing byte = iota
	partText
	partFlag
	partList
	partObject
)

func (p *parter) number(kind byte, n int) {
	var bytes [9]byte
	bytes[0] = kind
	binary.LittleEndian.PutUint64(bytes[1:], uint64(n))
	_, _ = p.hash.Write(bytes[:]) // It takes everything.
}

func (p *parter) text(text string) {
	if !p.texts.spend(1 + len(text)/hashedForFolded) {
		return
	}
	p.number(partText, len(text))
	_, _ = p.hash.Write([]byte(text))
}

func (p *parter) value(value any, depth int) {
	if p.left--; p.left < 0 || depth > maxPartDepth || !p.texts.within() {
		return
	}
	switch value := value.(type) {
	case nil:
		p.number(partMissing, 0)
	case string:
		p.text(p.texts.text(value))
	case bool:
		n := 0
		if value {
			n = 1
		}
		p.number(partFlag, n)
	case json.Number:
		p.text(p.normalNumber(string(value)))
	case map[string]any:
		p.object(value, depth)
	default:
		p.reflected(reflect.ValueOf(value), depth)
	}
}

func (p *parter) object(object map[string]any, depth int) {
	if !p.texts.spend(len(object)) {
		return
	}
	names := make([]string, 0, len(object))
	for name, value := range object {
		// Null and absent are the same.
		if value != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	p.number(partObject, len(names))
	for _, name := range names {
		if p.left < 0 {
			return
		}
		p.text(name)
		p.value(object[name], depth+1)
	}
}

// reflected hashes numbers of all types, and lists, whose elements may have a type as well.
func (p *parter) reflected(v reflect.Value, depth int) {
	switch {
	case v.CanInt():
		p.text(strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		p.text(strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		p.text(normalFloat(v.Float()))
	case v.Kind() == reflect.String:
		p.text(p.texts.text(v.String()))
	case v.Kind() == reflect.Slice:
		p.number(partList, v.Len())
		for i := 0; i < v.Len() && p.left >= 0; i++ {
			p.value(v.Index(i).Interface(), depth+1)
		}
	default:
		p.number(partMissing, 0)
	}
}

// normalNumber returns one spelling of a number: whole ones exactly, in whatever length.
func (p *parter) normalNumber(spelled string) string {
	if !p.texts.spend(len(spelled)) {
		return ""
	}
	if number, ok := wholeNumber(spelled); ok {
		return number
	}
	n, err := strconv.ParseFloat(spelled, 64)
	if err != nil && !math.IsInf(n, 0) {
		return p.texts.text(spelled)
	}
	return normalFloat(n)
}

// normalFloat spells a whole number as an integer is spelled.
func normalFloat(n float64) string {
	switch {
	case n == 0:
		// So is the zero below zero.
		return "0"
	case n == math.Trunc(n):
		return strconv.FormatFloat(n, 'f', -1, 64)
	default:
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
}

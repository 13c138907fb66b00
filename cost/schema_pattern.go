package cost

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// sizePattern is a key of [Config.ListSizes] that stands for several fields: *.errors, Product*.*.
type sizePattern struct {
	key           string
	object, field string
}

// readPatterns sorts the patterns of the configuration so that the one that says most comes first.
func (b *builder) readPatterns() {
	for key := range b.cfg.ListSizes {
		if !strings.Contains(key, "*") {
			continue
		}
		object, field, ok := strings.Cut(key, ".")
		if !ok || strings.Trim(key, "*._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			b.fail(key, "Config.ListSizes has a pattern that is not of the form *.errors or Product*.*")
			b.used["list "+key] = true
			continue
		}
		b.patterns = append(b.patterns, sizePattern{key, object, field})
	}
	letters := func(p sizePattern) int { return len(p.key) - strings.Count(p.key, "*") }
	slices.SortFunc(b.patterns, func(x, y sizePattern) int {
		return cmp.Or(cmp.Compare(letters(y), letters(x)), cmp.Compare(x.key, y.key))
	})
}

// patternSize returns the list size that a pattern gives to a field. A pattern is for the fields that it fits:
// it passes over one that returns no list and has no field that it sizes, or has none of its slicing arguments.
func (b *builder) patternSize(coordinate string, field *ast.FieldDefinition) (size ListSize, ok bool) {
	object, name, _ := strings.Cut(coordinate, ".")
	for _, p := range b.patterns {
		given := b.cfg.ListSizes[p.key]
		if !matches(p.object, object) || !matches(p.field, name) || !b.fits(&given, field) {
			continue
		}
		// One that is outranked everywhere is no mistake.
		b.used["list "+p.key] = true
		if !ok {
			size, ok = given, true
		}
	}
	return size, ok
}

// matches says whether a name is what the pattern says, which has no character with a meaning but the star.
func matches(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return is && err == nil
}

func (b *builder) fits(size *ListSize, field *ast.FieldDefinition) bool {
	for _, argument := range size.SlicingArguments {
		name, _, _ := strings.Cut(argument, ".")
		if field.Arguments.ForName(name) == nil {
			return false
		}
	}
	if len(size.SizedFields) == 0 {
		return field.Type.Elem != nil
	}
	return !slices.ContainsFunc(size.SizedFields, func(sized string) bool {
		name, _, nested := strings.Cut(sized, " ")
		return !nested && !b.isList(field.Type.Name(), name)
	})
}

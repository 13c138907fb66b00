package cli

import (
	"fmt"
	"slices"
	"strings"
)

// maxCompared is how many bytes of a name are compared.
const maxCompared = 64

// Unknown says that a name is not among those that are known, and which was meant if one is near.
func Unknown(what, name string, known []string) error {
	if near, ok := Nearest(name, known); ok {
		return Usagef("there is no %s %.80q: did you mean %q?", what, name, near)
	}
	if len(known) == 0 {
		return Usagef("there is no %s %.80q, nor any other", what, name)
	}
	sorted := slices.Sorted(slices.Values(known))
	more := ""
	if len(sorted) > 10 {
		sorted, more = sorted[:10], fmt.Sprintf(" and %d more", len(known)-10)
	}
	return Usagef("there is no %s %.80q: there is %s%s", what, name, strings.Join(sorted, ", "), more)
}

// Nearest returns the name that is most like this one, if one is like it: one of three letters may differ.
func Nearest(name string, known []string) (string, bool) {
	best, distance := "", max(1, min(len(name), maxCompared)/3)+1
	for _, candidate := range known {
		if candidate == name {
			continue
		}
		if d := distanceOf(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best, best != ""
}

// distanceOf is how many letters have to be added, removed, changed, or swapped with their neighbour.
func distanceOf(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		rows[2][0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			d := min(rows[1][j]+change, rows[1][j+1]+1, rows[2][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[0][j-1]+1)
			}
			rows[2][j+1] = d
		}
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
	}
	return rows[1][len(b)]
}

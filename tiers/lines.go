package tiers

import (
	"cmp"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how many keys lead to the deepest part of a policy, such as a capacity for an operation of users.
const maxDepth = 8

// position is where a key stands in a document, from 1 on.
type position struct{ line, column int }

// lines says where in a document each key of a policy stands, in 16 bytes a key: by a hash of its path, in order. A
// policy is no stranger's, so that two paths of one hash are met by chance alone.
type lines []lineOf

type lineOf struct {
	path         uint64
	line, column int32
}

// FNV-1a, which goes on where the path before has ended.
const (
	pathHashBegin = 14695981039346656037
	pathHashPrime = 1099511628211
)

func hashOn(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * pathHashPrime
	}
	return hash
}

// linesOf returns those of a document. Of duplicates the first counts.
func linesOf(root *yaml.Node) lines {
	all := appendLines(nil, pathHashBegin, root, maxDepth)
	slices.SortStableFunc(all, func(a, b lineOf) int { return cmp.Compare(a.path, b.path) })
	return slices.Clip(all)
}

// appendLines adds the keys of a mapping, and those in it.
func appendLines(all lines, at uint64, node *yaml.Node, depth int) lines {
	if node.Kind != yaml.MappingNode || depth == 0 {
		return all
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if !isKey(key) {
			continue
		}
		child := hashOn(hashOn(at, key.Value), "\x00")
		all = append(all, lineOf{child, int32(min(key.Line, math.MaxInt32)), int32(min(key.Column, math.MaxInt32))})
		all = appendLines(all, child, node.Content[i+1], depth-1)
	}
	return all
}

// of returns the position of a path, and whether it is in the document.
func (l lines) of(at path) (position, bool) {
	hash := hashOn(pathHashBegin, string(at))
	i, found := slices.BinarySearchFunc(l, hash, func(one lineOf, hash uint64) int { return cmp.Compare(one.path, hash) })
	if !found || at == "" {
		return position{}, false
	}
	return position{int(l[i].line), int(l[i].column)}, true
}

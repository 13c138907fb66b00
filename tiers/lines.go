package tiers

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// lines says on which line of a document each key of a policy stands, in 16 bytes a key: by a hash of its path, in order. A
// policy is no stranger's, so that two paths of one hash are met by chance alone.
type lines []lineOf

type lineOf struct {
	path uint64
	line int32
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

// linesOf returns those of a document.
func linesOf(root *yaml.Node) lines {
	all := appendLines(nil, pathHashBegin, root, maxDepth)
	slices.SortFunc(all, func(a, b lineOf) int { return cmp.Compare(a.path, b.path) })
	return slices.Clip(all)
}

// appendLines adds the keys of a mapping, and those in it.
func appendLines(all lines, at uint64, node *yaml.Node, depth int) lines {
	if node.Kind != yaml.MappingNode || depth == 0 {
		return all
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		child := hashOn(hashOn(at, key.Value), "\x00")
		all = append(all, lineOf{child, int32(min(key.Line, 1<<31-1))})
		all = appendLines(all, child, node.Content[i+1], depth-1)
	}
	return all
}

// of returns the line of a path, 0 if it is not in the document.
func (l lines) of(at path) int {
	hash := hashOn(pathHashBegin, string(at))
	i, found := slices.BinarySearchFunc(l, hash, func(one lineOf, hash uint64) int { return cmp.Compare(one.path, hash) })
	if !found || at == "" {
		return 0
	}
	return int(l[i].line)
}

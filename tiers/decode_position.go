package tiers

import "go.yaml.in/yaml/v3"

const (
	// maxDepth is how many keys lead to the deepest part of a policy, such as a capacity for an operation of users.
	maxDepth = 8
	// fewKeys is up to how many keys of a mapping are looked through one by one.
	fewKeys = 16
)

// position returns where the key stands to which a path leads, and where the document begins for the empty path.
func (d *decoder) position(at path) (position, bool) {
	if d.positions == nil {
		d.positions = map[path]position{"": {d.root.Line, d.root.Column}}
		d.locateIn("", d.root, maxDepth)
	}
	found, ok := d.positions[at]
	return found, ok
}

// locateIn notes where the keys of a mapping stand, and of those in it. Of duplicates the first counts.
func (d *decoder) locateIn(at path, node *yaml.Node, depth int) {
	if node.Kind != yaml.MappingNode || depth == 0 {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		child := at.to(key.Value)
		if _, known := d.positions[child]; known || !isKey(key) {
			continue
		}
		d.positions[child] = position{key.Line, key.Column}
		d.locateIn(child, node.Content[i+1], depth-1)
	}
}

// isKey reports whether a node can be a key. A tenant named by a number means its digits as they are written.
func isKey(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (node.Tag == "!!str" || node.Tag == "!!int")
}

// seenKeys are the keys of a mapping before one of them, where these are many. Nil means that they are few.
type seenKeys map[string]*yaml.Node

func newSeenKeys(mapping *yaml.Node) seenKeys {
	if keys := len(mapping.Content) / 2; keys > fewKeys {
		return make(seenKeys, keys)
	}
	return nil
}

// first returns the key of the same name that stands before this one, nil if there is none.
func (s seenKeys) first(before []*yaml.Node, key *yaml.Node) *yaml.Node {
	if s != nil {
		first := s[key.Value]
		if first == nil {
			s[key.Value] = key
		}
		return first
	}
	for i := 0; i < len(before); i += 2 {
		if isKey(before[i]) && before[i].Value == key.Value {
			return before[i]
		}
	}
	return nil
}

// onlyTier returns the tier of an exception that has a right one and no other key.
func onlyTier(node *yaml.Node) (string, bool) {
	if node.Kind != yaml.MappingNode || len(node.Content) != 2 {
		return "", false
	}
	key, value := node.Content[0], node.Content[1]
	right := isKey(key) && key.Value == "tier" && value.Kind == yaml.ScalarNode && value.Tag == "!!str" && value.Value != ""
	return value.Value, right
}

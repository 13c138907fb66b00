package cost

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// sameArguments says whether two calls give the same arguments, in any order. Each field is read once
// and then known by a number, because a fragment makes the same two fields meet wherever it is spread.
func (c *compiler) sameArguments(a, b *ast.Field) (bool, error) {
	if len(a.Arguments) != len(b.Arguments) {
		return false, nil
	}
	if a == b || len(a.Arguments) == 0 {
		return true, nil
	}
	first, err := c.argumentsID(a)
	if err != nil {
		return false, err
	}
	second, err := c.argumentsID(b)
	return first == second, err
}

// argumentsID returns the number that fields with the same arguments share.
func (c *compiler) argumentsID(field *ast.Field) (int32, error) {
	if id, ok := c.argumentIDs[field]; ok {
		return id, nil
	}
	arguments := slices.Clone(field.Arguments)
	slices.SortStableFunc(arguments, func(x, y *ast.Argument) int { return cmp.Compare(x.Name, y.Name) })
	var spelled []byte
	for _, arg := range arguments {
		var err error
		if spelled, err = c.spell(appendText(spelled, arg.Name), arg.Value, 0); err != nil {
			return 0, err
		}
	}
	id := once(&c.argumentLists, string(spelled), func() int32 { return int32(len(c.argumentLists)) })
	c.argumentIDs = remember(c.argumentIDs, field, id)
	return id, nil
}

// spell appends a literal so that two literals are spelled alike only if they are the same.
func (c *compiler) spell(spelled []byte, value *ast.Value, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, ErrTooDeep
	}
	if err := c.spend(1); err != nil {
		return nil, err
	}
	if value == nil {
		return append(spelled, 0), nil
	}
	// No kind is spelled like a value that is missing.
	spelled = binary.AppendUvarint(spelled, uint64(value.Kind)+1)
	spelled = appendText(spelled, value.Raw)
	spelled = binary.AppendUvarint(spelled, uint64(len(value.Children)))
	for _, child := range value.Children {
		var err error
		if spelled, err = c.spell(appendText(spelled, child.Name), child.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return spelled, nil
}

// appendText appends a text with its length before it.
func appendText(spelled []byte, text string) []byte {
	return append(binary.AppendUvarint(spelled, uint64(len(text))), text...)
}

package codehost

import (
	"fmt"
	"slices"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	// Total is the length of the whole list.
	Total int
	// HasNext says that the list goes on after the page.
	HasNext bool
}

// PageRequest says which part of a list is wanted.
type PageRequest struct {
	// First is the length of the page, between 0 and [MaxFirst].
	First int
	// After is the id of the last item of the page before. Empty starts at the beginning.
	After string
}

// pageOf cuts the page out of the items. It copies it, so that the list may change afterwards.
func pageOf[T Node](items []T, request PageRequest) (Page[T], error) {
	if err := checkFirst(request.First, 0); err != nil {
		return Page[T]{}, err
	}
	start := 0
	if request.After != "" {
		at := slices.IndexFunc(items, func(item T) bool { return item.NodeID() == request.After })
		if at < 0 {
			return Page[T]{}, fmt.Errorf("%w: the cursor in after is not in this list", ErrInvalid)
		}
		start = at + 1
	}
	end := min(start+request.First, len(items))
	return Page[T]{
		Items:   slices.Clone(items[start:end]),
		Total:   len(items),
		HasNext: end < len(items),
	}, nil
}

// checkFirst holds what a list returns to its bounds. Without it the price would be right and the
// server would still build a list of any length that a budget can pay.
func checkFirst(first, least int) error {
	if first < least || first > MaxFirst {
		return fmt.Errorf("%w: first is %d and has to be between %d and %d", ErrInvalid, first, least, MaxFirst)
	}
	return nil
}

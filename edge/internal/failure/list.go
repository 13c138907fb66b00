package failure

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// MaxMessages is how many bytes the messages of an answer have at most altogether, and maxMessage how many each has.
const (
	MaxMessages = 32 << 10
	maxMessage  = 1 << 10
)

// Listed returns the errors that an answer lists, with their messages cut.
func Listed(errors gqlerror.List, most int) gqlerror.List {
	list, bytes := make(gqlerror.List, 0, min(len(errors), most)+1), 0
	for i, err := range errors {
		err = shortened(err)
		bytes += len(err.Message)
		if i == most || bytes > MaxMessages {
			return append(list, gqlerror.Errorf("%d more errors are not listed", len(errors)-i))
		}
		list = append(list, err)
	}
	return list
}

// shortened returns the error with its message cut, and without a path that is long: names in it may be those of variables, of
// any length.
func shortened(err *gqlerror.Error) *gqlerror.Error {
	names := 0
	for _, step := range err.Path {
		if name, ok := step.(ast.PathName); ok {
			names += len(name)
		}
	}
	if len(err.Message) <= maxMessage && names <= maxMessage {
		return err
	}
	short := *err
	if len(err.Message) > maxMessage {
		short.Message = strings.ToValidUTF8(err.Message[:maxMessage-len("…")], "") + "…"
	}
	if names > maxMessage {
		short.Path = nil
	}
	return &short
}

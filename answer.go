package ratelimit

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// answerSize counts the bytes of an answer while it is made, and bounds them. Nothing is bounded before limit was called.
//
// gqlgen completes all fields before it writes the first byte, and an alias shares the text that it repeats until then. So
// the bytes are counted twice: what each field will have at least as it completes, which spares the work of the others, and
// exactly as they are written.
type answerSize struct {
	most int64
	// least is what the fields that have completed will have at least.
	least atomic.Int64
	// written is what the fields of the root have written, one after the other.
	written int64
	// left is how many bytes have left in all answers.
	left atomic.Int64
	// over says that there is more than may leave.
	over atomic.Bool
	// spared says that the root fields run whatever they add: a mutation is not cut in the middle.
	spared bool
}

// Bytes that are counted beside those that are measured.
const (
	// leastField is the shortest field of an answer: "a":1 and a comma.
	leastField = 6
	// leastError is an error without its message and its path.
	leastError = 40
	// leastStep is a step of a path.
	leastStep = 4
)

// limit begins to bound the answers of an operation.
func (a *answerSize) limit(most int64, opCtx *graphql.OperationContext) {
	a.most, a.spared = most, opCtx.Operation.Operation != ast.Query
	opCtx.ResolverMiddleware = a.counting(opCtx.ResolverMiddleware)
}

// counting wraps the middleware of all fields. It is what gqlgen calls for each field before all else, so that a field
// which may not leave costs nothing.
func (a *answerSize) counting(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		if a.over.Load() && (!a.spared || !atRoot(ctx)) {
			// gqlgen takes a marshaler for the result of any field, without the error that a nil would be.
			return graphql.Null, nil
		}
		result, err := next(ctx, resolve)
		if a.least.Add(leastField+leastOf(result)) > a.most {
			a.over.Store(true)
		}
		return result, err
	}
}

// atRoot reports whether the field that is resolved is one of the root type.
func atRoot(ctx context.Context) bool {
	field := graphql.GetFieldContext(ctx)
	return field == nil || field.Parent == nil || field.Parent.Parent == nil
}

// leastOf returns how many bytes of text the result of a field holds, 0 for what is not text. What texts are long is of
// these types nearly always; the rest is counted as it is written.
func leastOf(result any) int64 {
	switch text := result.(type) {
	case string:
		return int64(len(text))
	case *string:
		if text != nil {
			return int64(len(*text))
		}
	case []byte:
		return int64(len(text))
	case []string:
		n := int64(0)
		for i := range text {
			n += int64(len(text[i]))
		}
		return n
	case []*string:
		n := int64(0)
		for _, one := range text {
			if one != nil {
				n += int64(len(*one))
			}
		}
		return n
	}
	return 0
}

// bounded returns the result of a root field, which is not written beyond the bound.
func (a *answerSize) bounded(result graphql.Marshaler) graphql.Marshaler {
	// gqlgen compares with these.
	if a.most == 0 || result == nil || result == graphql.Null || result == graphql.RequiredNull {
		return result
	}
	return &boundedField{size: a, result: result}
}

type boundedField struct {
	size    *answerSize
	result  graphql.Marshaler
	counted countingWriter
}

// MarshalGQL writes the field, or null if it does not fit. What a marshaler writes after that goes nowhere: it cannot be
// stopped, and some panic where a write fails.
func (f *boundedField) MarshalGQL(w io.Writer) {
	if f.size.over.Load() {
		graphql.Null.MarshalGQL(w)
		return
	}
	from := 0
	buffer, ok := w.(*bytes.Buffer)
	if ok {
		from = buffer.Len()
	}
	f.counted = countingWriter{w: w, buffer: buffer, left: f.size.most - f.size.written}
	f.result.MarshalGQL(&f.counted)
	f.size.written = f.size.most - f.counted.left
	if f.counted.left >= 0 {
		return
	}
	f.size.over.Store(true)
	if ok {
		// Others read the data before it is replaced.
		buffer.Truncate(from)
		graphql.Null.MarshalGQL(w)
	}
}

// countingWriter passes on what it has room for. Its left is negative when something did not fit.
type countingWriter struct {
	w io.Writer
	// buffer is w, or nil if that is something else. An answer is written in so many pieces that finding out each time is
	// what takes longest.
	buffer *bytes.Buffer
	left   int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if !c.fits(len(p)) {
		return len(p), nil
	}
	if c.buffer != nil {
		return c.buffer.Write(p)
	}
	return c.w.Write(p)
}

// WriteString implements io.StringWriter.
func (c *countingWriter) WriteString(s string) (int, error) {
	if !c.fits(len(s)) {
		return len(s), nil
	}
	if c.buffer != nil {
		return c.buffer.WriteString(s)
	}
	return io.WriteString(c.w, s)
}

func (c *countingWriter) fits(n int) bool {
	if c.left >= 0 {
		c.left -= int64(n)
	}
	return c.left >= 0
}

// sizeOf returns about how many bytes a response has as it leaves: its data, and its errors without their extensions.
func sizeOf(response *graphql.Response) int64 {
	size := int64(len(response.Data))
	for _, escaped := range [...]string{"<", ">", "&"} {
		// Transports write each as six bytes, such as \u003c.
		size += int64(5 * bytes.Count(response.Data, []byte(escaped)))
	}
	for _, err := range response.Errors {
		if err == nil {
			continue
		}
		size += int64(leastError + len(err.Message) + leastStep*len(err.Path))
		for _, step := range err.Path {
			if name, ok := step.(ast.PathName); ok {
				size += int64(len(name))
			}
		}
	}
	return size
}

// leaves counts a response, and reports whether it may leave. Of one that may not, what was made counts as having left.
func (a *answerSize) leaves(response *graphql.Response, event bool) bool {
	size, before := sizeOf(response), a.left.Load()
	if event {
		// Each event is an answer of its own, and the parts of an answer are one.
		before = 0
	}
	over := a.over.Load() || a.most > 0 && size > a.most-before
	if over {
		size = max(0, a.most-before)
	}
	a.left.Add(size)
	a.over.Store(over && !event)
	if event {
		a.least.Store(0)
	}
	return !over
}

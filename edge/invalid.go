package edge

import (
	"container/list"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// digest is the SHA-256 of a text. Nobody finds two texts that have one, so that nobody has the valid document of another
// taken for invalid.
type digest [sha256.Size]byte

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }

// What is kept of one invalid document, and for how long: custom rules may think otherwise later.
const (
	invalidAge      = time.Minute
	maxInvalidBytes = 4 << 10
	maxLocations    = 8
	// bytesPerInvalid and bytesPerError are what an entry and an error take beside their texts.
	bytesPerInvalid = 512
	bytesPerError   = 512
)

// invalids is a memory of documents that failed to parse or validate, bounded in bytes. It belongs to one schema.
type invalids struct {
	most int

	mu       sync.Mutex
	byDigest map[digest]*list.Element
	// recent has the entries, the most recently used in front.
	recent list.List
	bytes  int
}

// invalid is what is known of a document. It does not change.
type invalid struct {
	digest digest
	// for whom the errors were made. A presenter may have put into them what is nobody else's business.
	whom   names
	at     time.Time
	errors gqlerror.List
	bytes  int
}

func newInvalids(most int) *invalids {
	return &invalids{most: most, byDigest: map[digest]*list.Element{}}
}

// find returns what is known of a document, nil if it may be valid.
func (c *invalids) find(d digest) *invalid {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byDigest[d]
	if element == nil {
		return nil
	}
	found := invalidOf(element)
	if time.Since(found.at) > invalidAge {
		c.drop(element)
		return nil
	}
	c.recent.MoveToFront(element)
	return found
}

// remember keeps what the document was answered with. The errors may be changed afterwards.
func (c *invalids) remember(d digest, whom names, errors gqlerror.List) {
	if len(errors) == 0 {
		return
	}
	entry := &invalid{digest: d, whom: whom, at: time.Now(), bytes: bytesPerInvalid + len(whom[0]) + len(whom[1]) + len(whom[2])}
	for i, err := range errors {
		size := bytesPerError + len(err.Message)
		if entry.bytes+size > maxInvalidBytes && i > 0 {
			break
		}
		kept := keptOf(err)
		entry.errors, entry.bytes = append(entry.errors, kept), entry.bytes+size
	}
	if entry.bytes > c.most {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byDigest[d]; old != nil {
		c.drop(old)
	}
	for c.bytes+entry.bytes > c.most {
		c.drop(c.recent.Back())
	}
	c.byDigest[d] = c.recent.PushFront(entry)
	c.bytes += entry.bytes
}

func (c *invalids) drop(element *list.Element) {
	entry := invalidOf(element)
	c.recent.Remove(element)
	delete(c.byDigest, entry.digest)
	c.bytes -= entry.bytes
}

func invalidOf(element *list.Element) *invalid {
	entry, _ := element.Value.(*invalid)
	return entry
}

// answer returns the errors for the named: those of the first answer to whoever had it, and to others what every reader of
// the document could know.
func (i *invalid) answer(whom names) gqlerror.List {
	if i.whom == whom {
		answer := make(gqlerror.List, 0, len(i.errors))
		for _, err := range i.errors {
			answer = append(answer, copyOf(err))
		}
		return answer
	}
	first := i.errors[0]
	told := &gqlerror.Error{Message: "the document is not valid", Locations: first.Locations}
	code := errcode.ValidationFailed
	if first.Extensions["code"] == errcode.ParseFailed {
		told.Message, code = "the document does not parse", errcode.ParseFailed
	}
	errcode.Set(told, code)
	return gqlerror.List{told}
}

// What the messages of an answer have at most, each and altogether.
const (
	maxMessage  = 1 << 10
	maxMessages = 32 << 10
)

// listed returns the errors that an answer lists, with their messages cut.
func listed(errors gqlerror.List, most int) gqlerror.List {
	list, bytes := make(gqlerror.List, 0, min(len(errors), most)+1), 0
	for i, err := range errors {
		err = shortened(err)
		bytes += len(err.Message)
		if i == most || bytes > maxMessages {
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

// keptOf returns what is kept of an error. What a presenter has put into its extensions may be of any size: the code alone
// is kept.
func keptOf(err *gqlerror.Error) *gqlerror.Error {
	kept := &gqlerror.Error{
		Message:   strings.Clone(err.Message[:min(len(err.Message), maxInvalidBytes)]),
		Locations: slices.Clone(err.Locations[:min(len(err.Locations), maxLocations)]),
	}
	if code, ok := err.Extensions["code"].(string); ok {
		kept.Extensions = map[string]any{"code": code}
	}
	return kept
}

// copyOf returns a copy that presenters may change.
func copyOf(err *gqlerror.Error) *gqlerror.Error {
	return &gqlerror.Error{Message: err.Message, Locations: slices.Clone(err.Locations), Extensions: maps.Clone(err.Extensions)}
}

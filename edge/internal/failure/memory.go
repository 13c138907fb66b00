// Package failure knows what documents failed with that did not parse or validate: for a while, in few bytes, and no longer in an
// answer than anybody reads.
package failure

import (
	"container/list"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// digest is the SHA-256 of a text. Nobody finds two texts that have one, so that nobody has the valid document of another
// taken for invalid.
type digest [sha256.Size]byte

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }

// What is kept of one invalid document, and for how long: custom rules may think otherwise later.
const (
	age          = time.Minute
	maxBytes     = 4 << 10
	maxLocations = 8
	// bytesPerEntry and bytesPerError are what an entry and an error take beside their texts.
	bytesPerEntry = 512
	bytesPerError = 512
)

// Memory is a memory of documents that failed to parse or validate, bounded in bytes. It belongs to one schema, and is safe for
// concurrent use.
type Memory struct {
	most int

	mu       sync.Mutex
	byDigest map[digest]*list.Element
	// recent has the entries, the most recently used in front.
	recent list.List
	bytes  int
}

// Failure is what is known of a document. It does not change.
type Failure struct {
	digest digest
	// for whom the errors were made. A presenter may have put into them what is nobody else's business.
	whom   [3]string
	at     time.Time
	errors gqlerror.List
	bytes  int
}

// New returns an empty memory of so many bytes.
func New(most int) *Memory {
	return &Memory{most: most, byDigest: map[digest]*list.Element{}}
}

// Find returns what is known of a document, nil if it may be valid.
func (m *Memory) Find(text string) *Failure {
	d := digestOf(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	element := m.byDigest[d]
	if element == nil {
		return nil
	}
	found := failureOf(element)
	if time.Since(found.at) > age {
		m.drop(element)
		return nil
	}
	m.recent.MoveToFront(element)
	return found
}

// Remember keeps what the document was answered with, and to whom: the names of a client, of which an empty one is nobody. The
// errors may be changed afterwards.
func (m *Memory) Remember(text string, whom [3]string, errors gqlerror.List) {
	if len(errors) == 0 {
		return
	}
	entry := &Failure{digest: digestOf(text), whom: whom, at: time.Now(), bytes: bytesPerEntry + len(whom[0]) + len(whom[1]) + len(whom[2])}
	for i, err := range errors {
		size := bytesPerError + len(err.Message)
		if entry.bytes+size > maxBytes && i > 0 {
			break
		}
		kept := keptOf(err)
		entry.errors, entry.bytes = append(entry.errors, kept), entry.bytes+size
	}
	if entry.bytes > m.most {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.byDigest[entry.digest]; old != nil {
		m.drop(old)
	}
	for m.bytes+entry.bytes > m.most {
		m.drop(m.recent.Back())
	}
	m.byDigest[entry.digest] = m.recent.PushFront(entry)
	m.bytes += entry.bytes
}

func (m *Memory) drop(element *list.Element) {
	entry := failureOf(element)
	m.recent.Remove(element)
	delete(m.byDigest, entry.digest)
	m.bytes -= entry.bytes
}

func failureOf(element *list.Element) *Failure {
	entry, _ := element.Value.(*Failure)
	return entry
}

// Answer returns the errors for the named: those of the first answer to whoever had it, and to others what every reader of
// the document could know.
func (f *Failure) Answer(whom [3]string) gqlerror.List {
	if f.whom == whom {
		answer := make(gqlerror.List, 0, len(f.errors))
		for _, err := range f.errors {
			answer = append(answer, copyOf(err))
		}
		return answer
	}
	first := f.errors[0]
	told := &gqlerror.Error{Message: "the document is not valid", Locations: first.Locations}
	code := errcode.ValidationFailed
	if first.Extensions["code"] == errcode.ParseFailed {
		told.Message, code = "the document does not parse", errcode.ParseFailed
	}
	errcode.Set(told, code)
	return gqlerror.List{told}
}

// keptOf returns what is kept of an error. What a presenter has put into its extensions may be of any size: the code alone
// is kept.
func keptOf(err *gqlerror.Error) *gqlerror.Error {
	kept := &gqlerror.Error{
		Message:   strings.Clone(err.Message[:min(len(err.Message), maxBytes)]),
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

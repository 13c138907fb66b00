package edge

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Documents is a cache of parsed and validated documents that is bounded by the memory that they take, for SetQueryCache
// of a gqlgen server. It is safe for concurrent use.
//
// The least recently used leaves first of those that were used little for what they take: once for each 16 KiB, and twice at
// least. Those that were used as often have three quarters of the memory to themselves (R. Karedla, J. Love and B. Wherry,
// "Caching strategies to improve disk system performance", 1994, where two uses are enough), until nobody has used them for ten minutes. So documents that somebody sends to drive
// out those of others drive out each other.
//
// With a [Door] on the server, which is told of it by [DocumentConfig.Cache], it keeps the documents of operations that
// the limiter has admitted and no others, so that what is refused cannot drive out what others use. Without one it keeps
// each document that is valid.
type Documents struct {
	most int

	mu     sync.Mutex
	byText map[string]*list.Element
	// proven has the entries that were used enough, and recent all others, the most recently used in front.
	recent, proven list.List
	// bytes is what all take, and provenBytes what those of proven take.
	bytes, provenBytes int
}

var _ graphql.Cache[*ast.QueryDocument] = (*Documents)(nil)

// cachedDocument is an entry of the cache.
type cachedDocument struct {
	text     string
	document *ast.QueryDocument
	bytes    int
	// uses counts since it came to the list that it is in.
	uses   int
	proven bool
	// used is when that was, of one that is proven.
	used time.Time
}

// bytesPerUse is how much an entry takes at most for each use, with which it is proven.
const bytesPerUse = 16 << 10

// provenAge is how long one that was used enough keeps its place without being used.
const provenAge = 10 * time.Minute

// isProven says whether the entry was used enough.
func (e *cachedDocument) isProven() bool { return e.uses > 1 && e.uses >= e.bytes/bytesPerUse }

// DefaultDocumentBytes is how large a cache of documents is by default.
const DefaultDocumentBytes = 64 << 20

// What an entry takes beside its text, from above. The largest of all tokens is a field __typename, to which validation
// gives a definition of its own: 405 bytes. A comment before a field stays with it, and takes 99.
const (
	bytesPerEntry   = 1 << 10
	bytesPerToken   = 440
	bytesPerComment = 128
)

// NewDocuments returns an empty cache that takes about so many bytes, of texts and of what was made of them. 0 and less mean
// [DefaultDocumentBytes].
func NewDocuments(bytes int) *Documents {
	if bytes <= 0 {
		bytes = DefaultDocumentBytes
	}
	return &Documents{most: bytes, byText: map[string]*list.Element{}}
}

// Get returns the document of a text. gqlgen calls it. What the door has found for the operation it returns even if it has left
// since.
func (d *Documents) Get(ctx context.Context, text string) (*ast.QueryDocument, bool) {
	found := handedIn(ctx)
	if found == nil || found.text != text {
		found = d.find(text)
	}
	if found == nil {
		return nil, false
	}
	return found.document, true
}

// Add keeps a document, if its operation is admitted where a door is on the server, and at once otherwise. gqlgen calls it.
func (d *Documents) Add(ctx context.Context, text string, document *ast.QueryDocument) {
	if p := passageIn(ctx); p != nil {
		p.cache, p.text, p.document = d, text, document
		return
	}
	d.keep(text, document)
}

// Len returns how many documents there are, and Bytes how much memory they are taken to need.
func (d *Documents) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byText)
}

// Bytes is described with [Documents.Len].
func (d *Documents) Bytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// find returns the entry of the text, nil if there is none, and counts a use. What it returns does not change, but for the count.
func (d *Documents) find(text string) *cachedDocument {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	element, ok := d.byText[text]
	if !ok {
		return nil
	}
	entry := entryOf(element)
	entry.uses++
	switch {
	case entry.proven:
		entry.used = time.Now()
		d.proven.MoveToFront(element)
	case entry.isProven():
		d.promote(element)
	default:
		d.recent.MoveToFront(element)
	}
	return entry
}

// promote gives an entry a place among those that were used enough, where the least recently used make room.
func (d *Documents) promote(element *list.Element) {
	d.move(element, true)
	entryOf(d.proven.Front()).used = time.Now()
	for d.provenBytes > d.most/4*3 {
		d.move(d.proven.Back(), false)
	}
}

// move puts an entry in front of the other list.
func (d *Documents) move(element *list.Element, proven bool) {
	entry := entryOf(element)
	from, to, bytes := &d.proven, &d.recent, -entry.bytes
	if proven {
		from, to, bytes = to, from, entry.bytes
	}
	from.Remove(element)
	entry.proven, entry.uses = proven, 1
	d.provenBytes += bytes
	d.byText[entry.text] = to.PushFront(entry)
}

func (d *Documents) keep(text string, document *ast.QueryDocument) {
	entry := &cachedDocument{text: text, document: document, bytes: weightOf(text), uses: 1}
	if entry.bytes > d.most {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.byText[text]; ok {
		d.drop(old)
	}
	for last := d.proven.Back(); last != nil && time.Since(entryOf(last).used) > provenAge; last = d.proven.Back() {
		d.move(last, false)
	}
	for d.bytes+entry.bytes > d.most {
		last := d.recent.Back()
		if last == nil {
			last = d.proven.Back()
		}
		d.drop(last)
	}
	d.byText[entry.text] = d.recent.PushFront(entry)
	d.bytes += entry.bytes
}

func (d *Documents) drop(element *list.Element) {
	entry := entryOf(element)
	if entry.proven {
		d.proven.Remove(element)
		d.provenBytes -= entry.bytes
	} else {
		d.recent.Remove(element)
	}
	delete(d.byText, entry.text)
	d.bytes -= entry.bytes
}

func entryOf(element *list.Element) *cachedDocument {
	entry, _ := element.Value.(*cachedDocument)
	return entry
}

// weightOf estimates from above what a document takes in memory: its text and what strings in it become, both in blocks
// that are up to a quarter larger, and what its tokens and comments become.
func weightOf(text string) int {
	tokens, comments := countOf(text)
	return bytesPerEntry + 2*(len(text)+len(text)/4) + bytesPerToken*tokens + bytesPerComment*comments
}

package edge

import (
	"container/list"
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Documents is a cache of parsed and validated documents that is bounded by the memory that they take, for SetQueryCache
// of a gqlgen server. The least recently used leaves first. It is safe for concurrent use.
//
// With a [Door] on the server, which is told of it by [DocumentConfig.Cache], it keeps the documents of operations that
// the limiter has admitted and no others, so that what is refused cannot drive out what others use. Without one it keeps
// each document that is valid.
type Documents struct {
	most int

	mu     sync.Mutex
	byText map[string]*list.Element
	// recent has the entries, the most recently used in front.
	recent list.List
	bytes  int
}

var _ graphql.Cache[*ast.QueryDocument] = (*Documents)(nil)

// cachedDocument is an entry of the cache.
type cachedDocument struct {
	text     string
	document *ast.QueryDocument
	bytes    int
}

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

// Get returns the document of a text. gqlgen calls it.
func (d *Documents) Get(_ context.Context, text string) (*ast.QueryDocument, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.byText[text]
	if !ok {
		return nil, false
	}
	d.recent.MoveToFront(found)
	return entryOf(found).document, true
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

// has says whether the document of the text is there, nothing more.
func (d *Documents) has(text string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.byText[text]
	return ok
}

func (d *Documents) keep(text string, document *ast.QueryDocument) {
	entry := &cachedDocument{text: text, document: document, bytes: weightOf(text)}
	if entry.bytes > d.most {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.byText[text]; ok {
		d.drop(old)
	}
	for d.bytes+entry.bytes > d.most {
		d.drop(d.recent.Back())
	}
	d.byText[entry.text] = d.recent.PushFront(entry)
	d.bytes += entry.bytes
}

func (d *Documents) drop(element *list.Element) {
	entry := entryOf(element)
	d.recent.Remove(element)
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

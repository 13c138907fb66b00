package edge

import (
	"context"
	"encoding/hex"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
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
type Documents struct{ cache *document.Cache }

var _ graphql.Cache[*ast.QueryDocument] = (*Documents)(nil)

// DefaultDocumentBytes is how large a cache of documents is by default.
const DefaultDocumentBytes = 64 << 20

// NewDocuments returns an empty cache that takes about so many bytes, of texts and of what was made of them. 0 and less mean
// [DefaultDocumentBytes].
func NewDocuments(bytes int) *Documents {
	if bytes <= 0 {
		bytes = DefaultDocumentBytes
	}
	return &Documents{document.NewCache(bytes)}
}

// Get returns the document of a text. gqlgen calls it. What the door has found for the operation it returns even if it has left
// since.
func (d *Documents) Get(ctx context.Context, text string) (*ast.QueryDocument, bool) {
	found := handedIn(ctx)
	if found == nil || found.Text != text {
		found = d.cache.Find(text)
	}
	if found == nil {
		return nil, false
	}
	return found.Document, true
}

// Add keeps a document, if its operation is admitted where a door is on the server, and at once otherwise. gqlgen calls it.
func (d *Documents) Add(ctx context.Context, text string, document *ast.QueryDocument) {
	if p := passageIn(ctx); p != nil {
		p.cache, p.text, p.document = d.cache, text, document
		return
	}
	d.cache.Keep(text, document)
}

// Persisted returns the texts of the documents by their SHA-256, for extension.AutomaticPersistedQuery of gqlgen. A text is known by its hash
// for as long as its document is kept, and takes no memory of its own. So nobody can drive out what others use by texts that the limiter
// refuses. The server needs the documents as its query cache: without that no hash is known.
func (d *Documents) Persisted() graphql.Cache[string] { return persisted{d.cache} }

// persisted finds texts by their hashes.
type persisted struct{ cache *document.Cache }

// Get returns the text of a hash in hexadecimal digits.
func (p persisted) Get(_ context.Context, digits string) (text string, found bool) {
	var hash document.Hash
	if len(digits) != hex.EncodedLen(len(hash)) {
		return "", false
	}
	if _, err := hex.Decode(hash[:], []byte(digits)); err != nil {
		return "", false
	}
	return p.cache.Text(hash)
}

// Add does nothing: the text is kept when its operation is admitted, with its document.
func (persisted) Add(context.Context, string, string) {}

// Len returns how many documents there are, and Bytes how much memory they are taken to need.
func (d *Documents) Len() int { return d.cache.Len() }

// Bytes is described with [Documents.Len].
func (d *Documents) Bytes() int { return d.cache.Bytes() }

// find returns the entry of the text, nil if there is none, or no cache.
func (d *Documents) find(text string) *document.Entry {
	if d == nil {
		return nil
	}
	return d.cache.Find(text)
}

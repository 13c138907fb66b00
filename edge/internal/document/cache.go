package document

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// Cache keeps what was made of texts, bounded by the memory that it takes. The least recently used leaves first of those that were used
// little, as edge.Documents says. It is safe for concurrent use. Nil keeps nothing.
type Cache struct {
	most int

	mu     sync.Mutex
	byText map[string]*list.Element
	byHash map[Hash]*Entry
	// proven has the entries that were used enough, and recent all others, the most recently used in front.
	recent, proven list.List
	// bytes is what all take, and provenBytes what those of proven take.
	bytes, provenBytes int
}

// Hash is the SHA-256 of a text.
type Hash = [sha256.Size]byte

// Entry is a document in the cache. What is exported of it does not change.
type Entry struct {
	Text     string
	Document *ast.QueryDocument

	hash  Hash
	bytes int
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
func (e *Entry) isProven() bool { return e.uses > 1 && e.uses >= e.bytes/bytesPerUse }

// What an entry takes beside its text, from above. The largest of all tokens is a field __typename, to which validation
// gives a definition of its own: 405 bytes. A comment before a field stays with it, and takes 99.
const (
	bytesPerEntry   = 1 << 10
	bytesPerToken   = 440
	bytesPerComment = 128
)

// NewCache returns an empty cache that takes about so many bytes, of texts and of what was made of them.
func NewCache(bytes int) *Cache {
	return &Cache{most: bytes, byText: map[string]*list.Element{}, byHash: map[Hash]*Entry{}}
}

// Len returns how many documents there are, and Bytes how much memory they are taken to need.
func (c *Cache) Len() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byText)
}

// Bytes is described with [Cache.Len].
func (c *Cache) Bytes() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Find returns the entry of the text, nil if there is none, and counts a use.
func (c *Cache) Find(text string) *Entry {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byText[text]
	if !ok {
		return nil
	}
	entry := entryOf(element)
	entry.uses++
	switch {
	case entry.proven:
		entry.used = time.Now()
		c.proven.MoveToFront(element)
	case entry.isProven():
		c.promote(element)
	default:
		c.recent.MoveToFront(element)
	}
	return entry
}

// Text returns the text of a hash, and false if there is none. It is no use of the document.
func (c *Cache) Text(hash Hash) (text string, found bool) {
	if c == nil {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.byHash[hash]
	if !found {
		return "", false
	}
	return entry.Text, true
}

// promote gives an entry a place among those that were used enough, where the least recently used make room.
func (c *Cache) promote(element *list.Element) {
	c.move(element, true)
	entryOf(c.proven.Front()).used = time.Now()
	for c.provenBytes > c.most/4*3 {
		c.move(c.proven.Back(), false)
	}
}

// move puts an entry in front of the other list.
func (c *Cache) move(element *list.Element, proven bool) {
	entry := entryOf(element)
	from, to, bytes := &c.proven, &c.recent, -entry.bytes
	if proven {
		from, to, bytes = to, from, entry.bytes
	}
	from.Remove(element)
	entry.proven, entry.uses = proven, 1
	c.provenBytes += bytes
	c.byText[entry.Text] = to.PushFront(entry)
}

// Keep keeps what was made of a text, unless that is larger than the cache.
func (c *Cache) Keep(text string, document *ast.QueryDocument) {
	if c == nil {
		return
	}
	entry := &Entry{Text: text, Document: document, bytes: weightOf(text), uses: 1}
	if entry.bytes > c.most {
		return
	}
	entry.hash = sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.byText[text]; ok {
		c.drop(old)
	}
	for last := c.proven.Back(); last != nil && time.Since(entryOf(last).used) > provenAge; last = c.proven.Back() {
		c.move(last, false)
	}
	for c.bytes+entry.bytes > c.most {
		last := c.recent.Back()
		if last == nil {
			last = c.proven.Back()
		}
		c.drop(last)
	}
	c.byText[entry.Text], c.byHash[entry.hash] = c.recent.PushFront(entry), entry
	c.bytes += entry.bytes
}

func (c *Cache) drop(element *list.Element) {
	entry := entryOf(element)
	if entry.proven {
		c.proven.Remove(element)
		c.provenBytes -= entry.bytes
	} else {
		c.recent.Remove(element)
	}
	delete(c.byText, entry.Text)
	delete(c.byHash, entry.hash)
	c.bytes -= entry.bytes
}

func entryOf(element *list.Element) *Entry {
	entry, _ := element.Value.(*Entry)
	return entry
}

// weightOf estimates from above what a document takes in memory: its text and what strings in it become, both in blocks
// that are up to a quarter larger, and what its tokens and comments become.
func weightOf(text string) int {
	tokens, comments := countOf(text)
	return bytesPerEntry + 2*(len(text)+len(text)/4) + bytesPerToken*tokens + bytesPerComment*comments
}

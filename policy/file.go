package policy

import (
	"bytes"
	"context"
	"fmt"
)

// File is the [Feed] of a policy file. It is made by [NewFile].
//
// A file with a policy document, YAML or JSON, is a new revision whenever its bytes change: its number is one more than
// that of the policy that holds, so that an operator who restores an old file is obeyed. A file with a revision, as
// [Revision.MarshalBinary] writes it, has the number and the signature that stand in it.
//
// Replace the file by renaming a new one over it, which shows readers the old document or the new one
// and never a part. A file that is written in place can be read when it is half written, and that half
// can be a valid document: one that ends before its exceptions blocks nobody. So what is asked for at an interval is
// not given before the next question has found the same. A writer that pauses for longer than the
// interval, the start, and [Follower.Reload] are not covered by that.
type File struct {
	path string
	// seen is the hash of what the last question has found and not given, because it was new.
	seen Hash
	// began says that a question was asked: the first is answered at once.
	began bool
}

var _ Feed = (*File)(nil)

// NewFile returns the feed of a file, which need not be there yet: a regular one of at most 1 MiB.
func NewFile(path string) *File { return &File{path: path} }

// OpenFile follows a policy file: it is [Follow] with [NewFile].
func OpenFile(path string, cfg Config) (*Follower, error) {
	return Follow(context.Background(), NewFile(path), cfg)
}

// String returns the path.
func (f *File) String() string { return f.path }

// Newest implements [Feed]. The content is compared and not the time of the file: that is too coarse on some
// file systems, and the content is small. A file that is larger than it may be is an error.
func (f *File) Newest(_ context.Context, have Head) (*Revision, error) {
	first := !f.began
	f.began = true
	data, err := readFile(f.path, maxFile)
	if err != nil {
		f.seen = Hash{}
		return nil, fmt.Errorf("policy: the policy file: %w", err)
	}
	seen := HashOf(data)
	if seen != have.Hash && seen != f.seen && !first {
		f.seen = seen
		return nil, ErrNotYet
	}
	f.seen = seen
	return f.revision(data, seen, have)
}

// revision returns what stands in the file, nil if that is what the follower has.
func (f *File) revision(data []byte, hash Hash, have Head) (*Revision, error) {
	if bytes.HasPrefix(data, []byte(revisionMark)) {
		r := &Revision{}
		if err := r.UnmarshalBinary(data); err != nil {
			return nil, err
		}
		if r.Head() == have {
			return nil, nil
		}
		return r, nil
	}
	if hash == have.Hash {
		return nil, nil
	}
	return &Revision{Number: have.Number + 1, Document: data, Hash: hash}, nil
}

// Hints implements [Feed]: a file has none.
func (*File) Hints(context.Context, func()) error { return ErrNoHints }

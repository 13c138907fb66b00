package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// revisionMark is the first line of a revision in a file. To YAML it would be a comment.
const revisionMark = "#ratelimit-revision 1\n"

// maxHeader is how many bytes the header of a revision has at most: author and reason, each of their bytes escaped.
const maxHeader = 8 << 10

// maxFile is how many bytes a revision in a file has at most.
const maxFile = len(revisionMark) + maxHeader + tiers.MaxDocument

// header is the second line of a revision in a file.
type header struct {
	Number    uint64 `json:"number"`
	Hash      Hash   `json:"hash"`
	Published int64  `json:"publishedMs,omitempty"`
	Author    string `json:"author,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// MarshalBinary returns the revision as it is kept in a file: a line that says so, a line of JSON with everything but
// the document, and the bytes of the document.
func (r *Revision) MarshalBinary() ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(header{r.Number, r.Hash, r.published(), r.Author, r.Reason, r.Signature})
	if err != nil {
		return nil, err
	}
	if len(line) >= maxHeader {
		return nil, r.refuse(ReasonMalformed, fmt.Errorf("its header has %d bytes, want less than %d", len(line), maxHeader))
	}
	data := make([]byte, 0, len(revisionMark)+len(line)+1+len(r.Document))
	data = append(data, revisionMark...)
	data = append(data, line...)
	data = append(data, '\n')
	return append(data, r.Document...), nil
}

// errNoRevision is a file that is something else.
var errNoRevision = errors.New("policy: this is no revision: it does not begin with the line that revisions begin with")

// errCutRevision is a revision whose header is not whole.
var errCutRevision = errors.New("policy: the header of the revision is cut off")

// UnmarshalBinary reads what [Revision.MarshalBinary] returns, and checks it as [Revision.Check] does: what is half
// written is an error. It keeps no part of the data.
func (r *Revision) UnmarshalBinary(data []byte) error {
	rest, found := bytes.CutPrefix(data, []byte(revisionMark))
	if !found {
		return errNoRevision
	}
	end := bytes.IndexByte(rest[:min(len(rest), maxHeader)], '\n')
	if end < 0 {
		return errCutRevision
	}
	var h header
	decoder := json.NewDecoder(bytes.NewReader(rest[:end]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return fmt.Errorf("policy: the header of the revision: %w", err)
	}
	read := Revision{
		Number: h.Number, Document: bytes.Clone(rest[end+1:]), Hash: h.Hash, Author: h.Author, Reason: h.Reason,
		Published: publishedAt(h.Published), Signature: h.Signature,
	}
	if err := read.Check(); err != nil {
		return err
	}
	*r = read
	return nil
}
